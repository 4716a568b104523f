import * as vscode from "vscode";
import { turnsOf, undoQuestion, type ShownTurn } from "../model/turns";
import type { Item, Session } from "../protocol";
import { labelText } from "../model/printable";
import { showChanges } from "./changes";
import type { ToWebview } from "./messages";
import { rewind, type Editor } from "./rewind";

/** Chat is the chat whose turns a command changes. */
export interface Chat {
  session: Session;
  items: readonly Item[];
  /** passes a message to its page */
  give: (message: ToWebview & { type: "draft" | "undraft" }) => void;
}

/** undoNewest undoes the newest turn of a chat after the user has chosen what and seen a preview. */
export async function undoNewest(editor: Editor, chat: Chat): Promise<void> {
  const newest = turnsOf(chat.items)[0];
  await (newest ? undo(editor, chat, newest) : editor.say(chat.session.sessionId, "There is no turn to undo."));
}

/** goBack lets the user choose a turn, and undoes it and all later ones. */
export async function goBack(editor: Editor, chat: Chat): Promise<void> {
  const turns = turnsOf(chat.items);
  if (turns.length === 0) {
    return void (await editor.say(chat.session.sessionId, "There is no turn to go back to."));
  }
  const items = turns.map((turn) => ({ label: labelText(turn.input.split("\n")[0] ?? ""), turn }));
  const picked = await vscode.window.showQuickPick(items, { title: "Go back to before a turn", placeHolder: "This turn and all later ones are undone, after a preview" });
  await (picked && undo(editor, chat, picked.turn));
}

/** newestChanges shows the files that the newest turn of a session changed, of those that are not undone. */
export async function newestChanges(editor: Editor, { sessionId, cwd }: Session): Promise<void> {
  const { data } = await editor.daemon.call("session/points", { sessionId });
  const newest = data.findLast(({ kind, undone, files }) => kind === "turn" && !undone && files > 0);
  await (newest ? showChanges(editor, { sessionId, pointId: newest.pointId }, cwd) : editor.say(sessionId, "This session changed no files, or all changes were undone."));
}

async function undo(editor: Editor, { session: { sessionId, cwd }, items, give }: Chat, { turnId, input }: ShownTurn) {
  const done = await rewind(editor, sessionId, turnId, { cwd, question: undoQuestion(items, turnId), reverted: () => give({ type: "undraft", text: input }) });
  if (done && done !== "only") {
    give({ type: "draft", text: input });
  }
}
