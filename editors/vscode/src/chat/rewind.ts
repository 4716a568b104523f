import * as vscode from "vscode";
import { messageOf, type Daemon } from "../daemon/daemon";
import { detailOf, undoneText } from "../model/undoText";
import type { NodeID, PointID, RewindFiles, SessionID, SessionRewindParams, TurnID } from "../protocol";
import type { Texts } from "../views/textDocuments";
import { showChanges } from "./changes";
import { forget, nodeBefore, revert, undo, type Undone } from "./undo";
import { shownWhole, type Say } from "../toasts";

/** Editor is the part of the extension that shows changes, and says what happened. */
export interface Editor {
  daemon: Daemon;
  texts: Texts;
  say: Say;
}

/** scopes are the parts of a session that an undo can restore. */
const scopes: (vscode.QuickPickItem & { files?: RewindFiles })[] = [
  { label: "Conversation and files", description: "undo both", files: "also" },
  { label: "Conversation only", description: "files do not change" },
  { label: "Files only", description: "the conversation does not change", files: "only" },
];

/**
 * rewind undoes a turn and all later turns after the user confirms a preview, which asks the question. It returns the scope, or undefined if
 * cancelled. It calls reverted if the user reverts the undo.
 */
export async function rewind(editor: Editor, sessionId: SessionID, toTurn: TurnID, { cwd, question, reverted }: { cwd: string; question: string; reverted?: () => void }): Promise<RewindFiles | "none" | undefined> {
  const way = await vscode.window.showQuickPick(scopes, { placeHolder: `${question} in\u2026` });
  if (!way) {
    return undefined;
  }
  const params = { sessionId, toTurn, ...(way.files && { files: way.files }) };
  const show = () => showChanges(editor, { sessionId, turnId: toTurn }, cwd);
  return (await previewAndUndo(editor, params, `${question}?`, { show, reverted })) ? (way.files ?? "none") : undefined;
}

/** rewindMessage undoes a message that steered a turn, and everything after it. The earlier part of its turn stays, and so do the files. See rewind for reverted. */
export async function rewindMessage(editor: Editor, sessionId: SessionID, node: NodeID, reverted: () => void): Promise<boolean> {
  const params = { sessionId, toNode: await nodeBefore(editor.daemon, sessionId, node) };
  return previewAndUndo(editor, params, "Undo this message and everything after it? Files do not change.", { reverted });
}

/** rewindFiles restores files to before a file point after the user confirms a preview. */
export async function rewindFiles(editor: Editor, sessionId: SessionID, toPoint: PointID, cwd: string): Promise<void> {
  const show = () => showChanges(editor, { sessionId, pointId: toPoint }, cwd);
  await previewAndUndo(editor, { sessionId, toPoint, files: "only" }, "Restore the files to their contents before this undo?", { show });
}

/** previewAndUndo shows a preview and reports whether the user confirmed it. show opens the changes of the turn or point. */
async function previewAndUndo({ daemon, say }: Editor, params: SessionRewindParams, question: string, { show, reverted }: { show?: () => Promise<void>; reverted?: () => void }): Promise<boolean> {
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
  offerRevert(daemon, say, undone, reverted).catch((error) => void vscode.window.showErrorMessage(...shownWhole(`lashd: ${messageOf(error)}`)));
  return true;
}

const showFirst = "Show Changes";

/** buttonsOf returns the buttons of the question before an undo. The first one is the default, so it never loses changes. */
export function buttonsOf(losesChanges: boolean): { go: string; buttons: string[] } {
  return losesChanges ? { go: "Undo Anyway", buttons: [showFirst, "Undo Anyway"] } : { go: "Undo", buttons: ["Undo"] };
}

/** offerRevert offers to revert an undo. The snapshot for it is deleted when the user closes the offer. */
async function offerRevert(daemon: Daemon, say: Say, undone: Undone, reverted?: () => void) {
  if (undone.pointId === undefined && undone.snapshot === undefined) {
    return;
  }
  const text = undoneText(undone.snapshot !== undefined, undone.pointId === undefined ? undefined : undone.files);
  const again = (await say(undone.sessionId, text, "Revert")) === "Revert";
  await (again ? revert : forget)(daemon, undone);
  if (again) {
    reverted?.();
  }
}

/** hiddenText states how many conversation entries an undo hides; empty for an undo of files only. */
function hiddenText(files: RewindFiles | undefined, nodes: number): string {
  return files === "only" ? "" : `${nodes === 1 ? "1 conversation entry" : `${nodes} conversation entries`} will be hidden, not deleted.`;
}
