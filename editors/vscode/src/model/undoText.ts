import type { FileRewind } from "../protocol";
import { counted } from "./sessions";

const verbs = { created: "will be restored", modified: "will change", deleted: "will be deleted" };

const reasons = {
  changedSince: "Later changes to it will be lost.",
  shared: "Another session may have changed it.",
  unsure: "Another program may have made these changes.",
  notKept: "lashd has no copy of its current contents.",
};

/** filesOf leaves out directories that come and go with their files. A directory that lashd cannot restore stays, because that is news. */
function filesOf(files: FileRewind[]): FileRewind[] {
  return files.filter(({ kind, conflict, unkept, problem }) => kind !== "directory" || [conflict, unkept, problem].some(Boolean));
}

/** detailOf describes the effect of an undo on each file, one per line. */
export function detailOf(all: FileRewind[]): string {
  const lines = filesOf(all).map((file) => {
    const lines = file.binary ? "" : ` (+${file.added ?? 0} \u2212${file.removed ?? 0})`;
    const kept = file.unkept ? `will not change: lashd has no copy of it (${file.unkept})` : `${verbs[file.effect]}${lines}`;
    return `${file.path} ${kept}.${file.conflict ? ` ${reasons[file.conflict]}` : ""}`;
  });
  const shown = lines.slice(0, 20);
  return [...shown, ...(lines.length > shown.length ? [`and ${lines.length - shown.length} more`] : [])].join("\n");
}

/** undoneText says what an undo did. */
export function undoneText(conversation: boolean, restored: FileRewind[] | undefined): string {
  const files = filesOf(restored ?? []);
  const left = files.filter((file) => file.problem ?? file.unkept).length;
  const some = left > 0 ? `${files.length - left} of ` : "";
  return [conversation ? "Undid a part of the conversation." : "", restored ? `Restored ${some}${counted(files.length, "file")}.` : ""].filter(Boolean).join(" ");
}
