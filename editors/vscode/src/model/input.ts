import type { Attached } from "../chat/messages";
import type { InputPart } from "../protocol";

/** toInput returns the parts of an input: the attachments with their names, then the text. */
export function toInput(text: string, attached: Attached[]): InputPart[] {
  const parts = attached.map(partOf);
  return text === "" ? parts : [...parts, { type: "text", text }];
}

function partOf({ label, text, file }: Attached): InputPart {
  if (file) {
    return { type: "attachment", attachment: { name: label, type: file.type, digest: file.digest } };
  }
  return { type: "text", text: text === "" ? `File: ${label}\n` : `File: ${label}\n${fenced(text)}\n` };
}

/** selectedLines names the lines of a selection. The last line counts only if some of it is selected. */
export function selectedLines({ start, end }: { start: { line: number }; end: { line: number; character: number } }): string {
  const last = end.character === 0 && end.line > start.line ? end.line : end.line + 1;
  return last === start.line + 1 ? String(last) : `${start.line + 1}-${last}`;
}

/** quotedOf returns the name and the text of an attachment that toInput made a text; undefined for other texts. */
export function quotedOf(text: string): { label: string; text: string } | undefined {
  const [, label, quoted = ""] = /^File: ([^\n]+)\n(?:(?:`{3,})\n([^]*?)\n?`{3,}\n)?$/.exec(text) ?? [];
  return label === undefined ? undefined : { label, text: quoted };
}

/** fenced encloses a text in a Markdown fence that is longer than any fence in it. */
function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text.replace(/\n?$/, "\n")}${fence}`;
}
