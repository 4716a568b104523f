import * as vscode from "vscode";
import { messageOf, type Daemon } from "../daemon/daemon";
import { counted } from "../model/sessions";
import type { FileRewind, PointID, RewindFiles, SessionID, SessionRewindParams, TurnID } from "../protocol";

/** scopes are the parts of a session that an undo can restore. */
const scopes: (vscode.QuickPickItem & { files?: RewindFiles })[] = [
  { label: "Conversation and files", description: "undo both", files: "also" },
  { label: "Conversation only", description: "files do not change" },
  { label: "Files only", description: "the conversation does not change", files: "only" },
];

/** rewind undoes a turn and all later turns after the user confirms a preview. It returns the scope, or undefined if cancelled. */
export async function rewind(daemon: Daemon, sessionId: SessionID, toTurn: TurnID): Promise<RewindFiles | "none" | undefined> {
  const way = await vscode.window.showQuickPick(scopes, { placeHolder: "Undo this turn and all later turns in\u2026" });
  if (!way) {
    return undefined;
  }
  const params = { sessionId, toTurn, ...(way.files && { files: way.files }) };
  return (await previewAndRewind(daemon, params, "Undo this turn and all later turns?")) ? (way.files ?? "none") : undefined;
}

/** rewindFiles restores files to before a file point after the user confirms a preview. */
export async function rewindFiles(daemon: Daemon, sessionId: SessionID, toPoint: PointID): Promise<void> {
  await previewAndRewind(daemon, { sessionId, toPoint, files: "only" }, "Restore the files to their contents before this undo?");
}

/** previewAndRewind shows a preview and reports whether the user confirmed it. */
async function previewAndRewind(daemon: Daemon, params: SessionRewindParams, question: string): Promise<boolean> {
  const preview = await daemon.call("session/rewind", { ...params, dryRun: true });
  const files = preview.files ?? [];
  const lost = files.filter((file) => file.conflict);
  const go = lost.length > 0 ? "Undo Anyway" : "Undo";
  if ((await vscode.window.showWarningMessage([question, hiddenText(params.files, preview.nodes)].filter(Boolean).join(" "), { modal: true, detail: detailOf(files) }, go)) !== go) {
    return false;
  }
  const done = await daemon.change("session/rewind", { ...params, ...(lost.length > 0 && { force: true }) });
  if (done.pointId !== undefined) {
    offerRevert(daemon, params.sessionId, done.pointId, done.files ?? []).catch((error) => void vscode.window.showErrorMessage(`lashd: ${messageOf(error)}`));
  }
  return true;
}

async function offerRevert(daemon: Daemon, sessionId: SessionID, toPoint: PointID, files: FileRewind[]) {
  const left = files.filter((file) => file.problem ?? file.unkept);
  const message = `lashd: Restored ${files.length - left.length} of ${counted(files.length, "file")}.`;
  if (await vscode.window.showInformationMessage(message, "Revert")) {
    await daemon.change("session/rewind", { sessionId, toPoint, files: "only" });
  }
}

/** hiddenText states how many conversation entries an undo hides; empty for an undo of files only. */
function hiddenText(files: RewindFiles | undefined, nodes: number): string {
  return files === "only" ? "" : `${nodes === 1 ? "1 conversation entry" : `${nodes} conversation entries`} will be hidden, not deleted.`;
}

const verbs = { created: "will be restored", modified: "will change", deleted: "will be deleted" };

const reasons = {
  changedSince: "Later changes to it will be lost.",
  shared: "Another session may have changed it.",
  unsure: "Another program may have made these changes.",
  notKept: "lashd has no copy of its current contents.",
};

/** detailOf describes the effect of an undo on each file, one per line. */
export function detailOf(files: FileRewind[]): string {
  const lines = files.map((file) => {
    const lines = file.binary ? "" : ` (+${file.added ?? 0} \u2212${file.removed ?? 0})`;
    const kept = file.unkept ? `will not change: lashd has no copy of it (${file.unkept})` : `${verbs[file.effect]}${lines}`;
    return `${file.path} ${kept}.${file.conflict ? ` ${reasons[file.conflict]}` : ""}`;
  });
  const shown = lines.slice(0, 20);
  return [...shown, ...(lines.length > shown.length ? [`and ${lines.length - shown.length} more`] : [])].join("\n");
}
