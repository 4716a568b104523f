import { linesOf } from "../model/approvals";
import type { TextHunk } from "../model/diff";
import { languageOf } from "../model/languages";
import { h } from "./dom";
import type { Highlights } from "./highlights";

const kinds = { "+": "added", "-": "removed", " ": "same" };

/** diffElement shows hunks of a file with line numbers and the colors of its language. A row separates two hunks. */
export function diffElement(hunks: TextHunk[], path: string, highlights: Highlights): HTMLElement {
  const digits = Math.max(...hunks.flatMap(linesOf).map(({ number }) => String(number ?? "").length));
  const rows = hunks.flatMap((hunk, at) => [...(at > 0 ? [h("span", { class: "gap", label: "unchanged lines" }, "\u22ef\n")] : []), ...hunkRows(hunk, languageOf(path), highlights, digits)]);
  return h("pre", { class: "diff" }, ...rows);
}

/** hunkRows colors the lines of each side together, because the meaning of a line can depend on those before it. */
function hunkRows(hunk: TextHunk, language: string, highlights: Highlights, digits: number): HTMLElement[] {
  const lines = linesOf(hunk).map((line) => ({ ...line, code: h("code", {}, `${line.text}\n`) }));
  for (const other of ["-", "+"]) {
    const side = lines.filter(({ mark }) => mark !== other);
    const text = side.map((line) => line.text).join("\n");
    highlights.paintLines(side.map(({ code }) => code), text === "" ? "" : language, text);
  }
  return lines.map(({ number, mark, code }) => h("span", { class: kinds[mark] }, h("i", {}, String(number ?? "").padStart(digits)), `${mark} `, code));
}
