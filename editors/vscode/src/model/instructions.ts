import type { InstructionFile } from "../protocol";

/** useText says when the model gets a file of instructions, and how much of it. */
export function useText(file: InstructionFile): string {
  const { use, patterns = [], importedBy, problem = "" } = file;
  if (use === "skipped") {
    return importedBy ? `not imported by ${importedBy}: ${problem}` : `not read: ${problem}`;
  }
  const when = { always: "in each turn", added: "in the conversation, because a file near it was used", matches: `when a file matches ${patterns.join(", ")}`, listed: "when the model asks for it" }[use];
  return [when, importedBy && `imported by ${importedBy}`, sizeOf(file)].filter(Boolean).join(" \u00b7 ");
}

/** sizeOf returns the size of a file, and how much of it the model gets if that is less. */
function sizeOf({ use, bytes, shownBytes }: InstructionFile): string {
  const part = (use === "always" || use === "added") && shownBytes < bytes;
  return part ? `the first ${shownBytes} of ${bytes} bytes` : `${bytes} bytes`;
}
