import { languageOf } from "../model/languages";
import { h } from "./dom";
import type { Highlights } from "./highlights";

/** The longest value that is shown on one line with others, in characters. */
const maxInline = 80;

/** argumentElements shows the arguments of a call: the short ones on a line, then each text of several lines as it is, and other long values as JSON. It leaves out the one that is shown elsewhere. */
export function argumentElements(args: unknown, highlights: Highlights, elsewhere?: string): HTMLElement[] {
  if (typeof args !== "object" || args === null || Array.isArray(args)) {
    return [block(JSON.stringify(args ?? {}, undefined, 2), "json", highlights)];
  }
  const all = Object.entries(args as Record<string, unknown>).filter(([name]) => name !== elsewhere).map(([name, value]) => ({ name, value, text: typeof value === "string" ? value : JSON.stringify(value) ?? "" }));
  const path = all.find(({ name }) => name === "path")?.text ?? "";
  const [long, short] = [all.filter(isLong), all.filter((one) => !isLong(one))];
  const line = short.flatMap(({ name, text, value }, at) => [at > 0 && " \u00b7 ", `${name}: `, name === "path" && typeof value === "string" ? link(text) : text]);
  const titled = long.length > 1 || short.length > 0;
  return [
    ...(line.length === 0 ? [] : [h("p", { class: "facts" }, ...line)]),
    ...long.flatMap(({ name, value, text }) => [
      ...(titled && name !== "command" ? [h("p", { class: "facts" }, `${name}:`)] : []),
      typeof value === "string" ? block(text, languageFor(name, path), highlights) : block(JSON.stringify(value, undefined, 2), "json", highlights),
    ]),
    ...(all.length === 0 && elsewhere === undefined ? [h("p", { class: "facts" }, "No arguments")] : []),
  ];
}

/** link opens a file. */
function link(path: string): HTMLElement {
  const element = h("a", {}, path);
  element.setAttribute("href", path);
  return element;
}

function isLong({ name, text }: { name: string; text: string }): boolean {
  return name === "command" || text.includes("\n") || text.length > maxInline;
}

function languageFor(name: string, path: string): string {
  return { command: "shellscript", patch: "" }[name] ?? languageOf(path); // a high-contrast theme of VS Code makes the lines of a patch unreadable
}

function block(text: string, language: string, highlights: Highlights): HTMLElement {
  const code = h("code", {}, text);
  highlights.paint(code, language, text);
  return h("pre", { class: "args" }, code);
}
