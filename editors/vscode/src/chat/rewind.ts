import * as vscode from "vscode";
import { messageOf, type Daemon } from "../daemon/daemon";
import { counted } from "../model/sessions";
import type { FileRewind, NodeID, PointID, RewindFiles, SessionID, SessionRewindParams, TurnID } from "../protocol";
import type { Texts } from "../views/textDocuments";
import { showChanges } from "./changes";
import { forget, nodeBefore, revert, undo, type Undone } from "./undo";
import { shownWhole } from "../toasts";

/** Editor is the part of the extension that shows changes. */
interface Editor {
  daemon: Daemon;
  texts: Texts;
}

/** scopes are the parts of a session that an undo can restore. */
const scopes: (vscode.QuickPickItem & { files?: RewindFiles })[] = [
  { label: "Conversation and files", description: "undo both", files: "also" },
  { label: "Conversation only", description: "files do not change" },
  { label: "Files only", description: "the conversation does not change", files: "only" },
];

/**
 * rewind undoes a turn and all later turns after the user confirms a preview. It returns the scope, or undefined if cancelled. It calls reverted
 * if the user reverts the undo.
 */
export async function rewind({ daemon, texts }: Editor, sessionId: SessionID, toTurn: TurnID, cwd: string, reverted?: () => void): Promise<RewindFiles | "none" | undefined> {
  const way = await vscode.window.showQuickPick(scopes, { placeHolder: "Undo this turn and all later turns in\u2026" });
  if (!way) {
    return undefined;
  }
  const params = { sessionId, toTurn, ...(way.files && { files: way.files }) };
  const show = () => showChanges({ daemon, texts }, { sessionId, turnId: toTurn }, cwd);
  return (await previewAndUndo(daemon, params, "Undo this turn and all later turns?", { show, reverted })) ? (way.files ?? "none") : undefined;
}

/** rewindMessage undoes a message that steered a turn, and everything after it. The earlier part of its turn stays, and so do the files. See rewind for reverted. */
export async function rewindMessage(daemon: Daemon, sessionId: SessionID, node: NodeID, reverted: () => void): Promise<boolean> {
  const params = { sessionId, toNode: await nodeBefore(daemon, sessionId, node) };
  return previewAndUndo(daemon, params, "Undo this message and everything after it? Files do not change.", { reverted });
}

/** rewindFiles restores files to before a file point after the user confirms a preview. */
export async function rewindFiles({ daemon, texts }: Editor, sessionId: SessionID, toPoint: PointID, cwd: string): Promise<void> {
  const show = () => showChanges({ daemon, texts }, { sessionId, pointId: toPoint }, cwd);
  await previewAndUndo(daemon, { sessionId, toPoint, files: "only" }, "Restore the files to their contents before this undo?", { show });
}

/** previewAndUndo shows a preview and reports whether the user confirmed it. show opens the changes of the turn or point. */
async function previewAndUndo(daemon: Daemon, params: SessionRewindParams, question: string, { show, reverted }: { show?: () => Promise<void>; reverted?: () => void }): Promise<boolean> {
  const { files = [], nodes } = await daemon.call("session/rewind", { ...params, dryRun: true });
  const lost = files.filter((file) => file.conflict);
  const { go, buttons } = buttonsOf(lost.length > 0 && show !== undefined);
  const text = [question, hiddenText(params.files, nodes)].filter(Boolean).join(" ");
  const picked = await vscode.window.showWarningMessage(text, { modal: true, detail: detailOf(files) }, ...buttons);
  if (picked === showFirst) {
    await show?.();
  }
  if (picked !== go) {
    return false;
  }
  const undone = await undo(daemon, { ...params, ...(lost.length > 0 && { force: true }) }, nodes);
  offerRevert(daemon, undone, reverted).catch((error) => void vscode.window.showErrorMessage(...shownWhole(`lashd: ${messageOf(error)}`)));
  return true;
}

const showFirst = "Show Changes";

/** buttonsOf returns the buttons of the question before an undo. The first one is the default, so it never loses changes. */
export function buttonsOf(losesChanges: boolean): { go: string; buttons: string[] } {
  return losesChanges ? { go: "Undo Anyway", buttons: [showFirst, "Undo Anyway"] } : { go: "Undo", buttons: ["Undo"] };
}

/** offerRevert offers to revert an undo. The snapshot for it is deleted when the user closes the offer. */
async function offerRevert(daemon: Daemon, undone: Undone, reverted?: () => void) {
  if (undone.pointId === undefined && undone.snapshot === undefined) {
    return;
  }
  const again = (await vscode.window.showInformationMessage(...shownWhole(`lashd: ${undoneText(undone)}`, "Revert"))) === "Revert";
  await (again ? revert : forget)(daemon, undone);
  if (again) {
    reverted?.();
  }
}

/** undoneText says what an undo did. */
export function undoneText({ files, pointId, snapshot }: Undone): string {
  const left = files.filter((file) => file.problem ?? file.unkept);
  const some = left.length > 0 ? `${files.length - left.length} of ` : "";
  const restored = pointId === undefined ? "" : `Restored ${some}${counted(files.length, "file")}.`;
  return [snapshot === undefined ? "" : "Undid a part of the conversation.", restored].filter(Boolean).join(" ");
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
