import type { Attached } from "../chat/messages";
import type { InputPart } from "../protocol";

/** toInput returns the parts of an input: the attachments with their names, then the text. */
export function toInput(text: string, attached: Attached[]): InputPart[] {
  const parts = attached.map(partOf);
  return text === "" ? parts : [...parts, { type: "text", text }];
}

/** headings name attached texts that are no files. */
const headings = { terminal: "Terminal output", problems: "Problems of the editor", folder: "Files of the folder" } as const;

/** TextKind is the kind of an attached text that is no file. */
export type TextKind = keyof typeof headings;

function partOf({ label, text, file, kind }: Attached): InputPart {
  if (file) {
    return { type: "attachment", attachment: { name: label, type: file.type, digest: file.digest } };
  }
  const heading = `${kind ? headings[kind] : "File"}: ${label}\n`;
  return { type: "text", text: text === "" ? heading : `${heading}${fenced(text)}\n` };
}

/** selectedLines names the lines of a selection. The last line counts only if some of it is selected. */
export function selectedLines({ start, end }: { start: { line: number }; end: { line: number; character: number } }): string {
  const last = end.character === 0 && end.line > start.line ? end.line : end.line + 1;
  return last === start.line + 1 ? String(last) : `${start.line + 1}-${last}`;
}

/** Quoted is an attachment that is a part of an input as a text. */
export interface Quoted {
  label: string;
  text: string;
  /** absent: a file */
  kind?: TextKind;
}

/** quotedOf returns the attachment that toInput made a text; undefined for other texts. */
export function quotedOf(text: string): Quoted | undefined {
  const [, heading, label, quoted = ""] = /^([A-Z][a-z ]+): ([^\n]+)\n(?:(?:`{3,})\n([^]*?)\n?`{3,}\n)?$/.exec(text) ?? [];
  const kind = (Object.keys(headings) as TextKind[]).find((one) => headings[one] === heading);
  return label === undefined || (heading !== "File" && !kind) ? undefined : { label, text: quoted, ...(kind && { kind }) };
}

/** fenced encloses a text in a Markdown fence that is longer than any fence in it. */
function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text.replace(/\n?$/, "\n")}${fence}`;
}
