import * as vscode from "vscode";
import type { CommandContext } from "./commands";
import { tokensText } from "./model/context";
import { titleOf } from "./model/sessions";
import type { SessionID } from "./protocol";
import { shownWhole } from "./toasts";

/** Parts are the parts of the extension that change sessions. */
type Parts = Pick<CommandContext, "daemon" | "sessions" | "chats">;

/** fork starts a session with the history of another one, in the place of its chat. */
export async function fork({ daemon, chats }: Parts, id: SessionID): Promise<void> {
  const { sessionId } = await daemon.change("session/fork", { sessionId: id });
  chats.show(sessionId, id);
}

/** compact shows in the chat what a compaction would do. The user starts it there. */
export async function compact({ daemon, chats }: Parts, sessionId: SessionID, instructions: string): Promise<void> {
  const preview = await daemon.call("session/compactPreview", { sessionId });
  if (preview.compacts) {
    chats.give(sessionId, { type: "compaction", preview, instructions });
  } else {
    void chats.say(sessionId, `There is nothing to compact: the history has about ${tokensText(preview.tokens)} tokens, and its newest input or up to ${tokensText(preview.keeps)} tokens stay word for word.`);
  }
}

/** rename gives a session a title, which it asks for if it is empty. */
export async function rename({ daemon, sessions }: Parts, sessionId: SessionID, given: string): Promise<void> {
  const session = sessions.list.get(sessionId);
  const title = given || (await vscode.window.showInputBox({ prompt: "Session title", value: session && titleOf(session) }));
  if (title) {
    await daemon.change("session/setTitle", { sessionId, title });
  }
}

/** stop stops the running turn of a session, if any. */
export async function stop({ daemon }: Parts, sessionId: SessionID): Promise<void> {
  const { data } = await daemon.call("turn/list", { sessionId, limit: 10 });
  const running = data.find((turn) => turn.state === "running" || turn.state === "waiting");
  if (running) {
    await daemon.change("turn/interrupt", { turnId: running.turnId });
  }
}

/** archive archives a session and closes its chat. It offers to undo both. */
export async function archive({ daemon, sessions, chats }: Parts, sessionId: SessionID): Promise<void> {
  const session = sessions.list.get(sessionId);
  const place = chats.isOpen(sessionId) ? chats.placeOf(sessionId) : undefined;
  await daemon.change("session/archive", { sessionId });
  chats.close(sessionId);
  const undo = "Undo";
  if ((await vscode.window.showInformationMessage(...shownWhole(`lashd: Archived "${session ? titleOf(session) : sessionId}".`, undo))) === undo) {
    await daemon.change("session/archive", { sessionId, undo: true });
    await (place && chats.move(sessionId, place));
  }
}

/** remove deletes a session after the user confirms it. */
export async function remove({ daemon, sessions, chats }: Parts, sessionId: SessionID): Promise<void> {
  const session = sessions.list.get(sessionId);
  const question = `Delete the session "${session ? titleOf(session) : sessionId}" permanently?`;
  if (await vscode.window.showWarningMessage(question, { modal: true }, "Delete")) {
    chats.close(sessionId);
    await daemon.change("session/delete", { sessionId });
  }
}
