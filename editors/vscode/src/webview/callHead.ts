import { callWords, looksText, type Known, type Subject, type Tense } from "../model/callWords";
import { durationText } from "../model/cells";
import type { Item } from "../protocol";
import { h } from "./dom";
import { icon } from "./icons";
import { exitCodeOf, icons, states } from "./itemParts";
import type { ItemRow } from "./rows";

/** callHead says on one line what a call did, does or would do. Its icon is that of its kind, or of what went wrong. */
export function callHead({ item, asked }: ItemRow, known: Known): HTMLElement {
  const change = item.output?.change;
  const code = item.status === "completed" ? exitCodeOf(item.output) : undefined;
  const words = callWords(item, tenseOf(item, asked), known);
  const [name, label] = signOf(item, asked, code, words.icon);
  const all = [
    h("b", {}, words.verb),
    ...subjectElements(words.about),
    words.rest !== undefined && h("span", { class: "rest" }, words.rest),
    change && h("span", { class: "lines" }, h("span", { class: "plus" }, `+${change.added}`), " ", h("span", { class: "minus" }, `\u2212${change.removed}`)),
    code !== undefined && h("span", { class: "exit" }, `exit code ${code}`),
    isDenied(item) && h("span", { class: "denied" }, item.decision?.why.by === "preview" ? "not run" : "denied"),
    item.durationMs !== undefined && item.durationMs >= 1000 && h("span", { class: "took" }, durationText(item.durationMs)),
  ];
  return line(`${item.status}${code === undefined ? "" : " nonzero"}`, icon(name, label), all, item.tool);
}

/** line puts the parts of a call on a line, with spaces between them for whoever copies it. */
function line(state: string, sign: HTMLElement, parts: (HTMLElement | undefined | false)[], title?: string): HTMLElement {
  return h("span", { class: `call ${state}`, title }, h("span", { class: "icon" }, sign), ...parts.flatMap((part) => (part ? [" ", part] : [])));
}

/** runHead says on one line what several calls did that only looked at files. */
export function runHead(run: ItemRow[], known: Known): HTMLElement {
  const [verb = "", ...rest] = looksText(run.map(({ item }) => item), known).split(" ");
  return line("completed", icon("eye", states.completed), [h("b", {}, verb), h("span", { class: "about" }, rest.join(" "))]);
}

/** isDenied reports whether a call did not run because it was denied, or because its preview showed that it cannot succeed. */
export function isDenied({ decision }: Item): boolean {
  return decision?.mode === "deny";
}

function tenseOf({ status }: Item, asked: boolean | undefined): Tense {
  return status === "completed" ? "done" : status === "inProgress" && !asked ? "running" : "verb";
}

/** signOf returns the icon of a call and what it says to screen readers. */
function signOf(item: Item, asked: boolean | undefined, code: number | undefined, kind: string): [string, string] {
  if (asked) {
    return ["question", "waits for an answer"];
  }
  if (code !== undefined) {
    return ["warning", "completed with an error"];
  }
  return isDenied(item) ? ["circle-slash", "denied"] : [item.status === "completed" ? kind : icons[item.status], states[item.status]];
}

/** subjectElements shows what a call is about. A file has its name first, as in VS Code, and then its directory. */
function subjectElements(about: Subject | undefined): HTMLElement[] {
  if (about === undefined || "words" in about) {
    return about ? [h("span", { class: "about" }, about.words)] : [];
  }
  if ("code" in about) {
    return [h("code", {}, about.code)];
  }
  const [, directory = "", name = about.file] = /^(.*)\/([^/]+)$/.exec(about.file) ?? [];
  return [h("span", { class: "about", title: about.file }, name), ...(directory === "" ? [] : [h("span", { class: "rest" }, directory)])];
}
