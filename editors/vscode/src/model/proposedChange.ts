import type { Decision } from "../protocol";
import { fileTitle, isIncomplete, missingText, tally } from "./approvals";

/** previewTitle names the editor of a file that an approval would change. It says if the call does more than the editor shows. */
export function previewTitle({ detail }: Decision, file: number): string {
  const files = detail?.files ?? [];
  const shown = files[file];
  const part = shown && isIncomplete(shown) ? "a part of the proposed change" : "proposed change";
  return `${shown?.path ?? ""} (${part}${files.length > 1 ? `, file ${file + 1} of ${files.length}` : ""})`;
}

/** unshownText lists all that a call does if an editor with one of its files does not show all of it; "" if the editor does. */
export function unshownText({ detail }: Decision): string {
  const { files = [], hosts = [], command } = detail ?? {};
  const whole = files.length === 1 && !files.some(isIncomplete) && hosts.length === 0 && !command;
  const lines = files.map((file) => [`${fileTitle(file)} ${tally(file)}`, missingText(file)].filter(Boolean).join(". "));
  return whole ? "" : [...lines, ...(command ? [command.command] : []), ...(hosts.length > 0 ? [`Network: ${hosts.join(", ")}`] : [])].join("\n");
}
