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

/** fenced encloses a text in a Markdown fence that is longer than any fence in it. */
function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text.replace(/\n?$/, "\n")}${fence}`;
}
