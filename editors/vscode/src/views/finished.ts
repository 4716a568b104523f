import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import { hasFinished } from "../model/finished";
import { titleOf } from "../model/sessions";
import type { Session, SessionID } from "../protocol";
import type { Sessions } from "../sessions";
import { shownWhole } from "../toasts";

/** notifyFinished shows a notification when a turn ends whose chat is hidden, or while the window is in the background. here reports whether a session belongs to this window. */
export function notifyFinished(daemon: Daemon, sessions: Sessions, visible: (id: SessionID) => boolean, here: (id: SessionID) => boolean): vscode.Disposable {
  const states = new Map<SessionID, Session>();
  sessions.onChange(() => sessions.list.forEach((session, id) => states.has(id) || states.set(id, session)));
  return daemon.onServerEvent(({ type, session }) => {
    if (type !== "session/changed" || !session) {
      return;
    }
    const before = states.get(session.sessionId);
    states.set(session.sessionId, session);
    const seen = visible(session.sessionId) && vscode.window.state.focused;
    const wanted = vscode.workspace.getConfiguration("lashd").get("notifyFinished", true);
    if (wanted && !seen && here(session.sessionId) && hasFinished(before, session)) {
      void show(session);
    }
  });
}

async function show(session: Session) {
  if ((await vscode.window.showInformationMessage(...shownWhole(`lashd: "${titleOf(session)}" has finished its turn.`, "Show"))) === "Show") {
    await vscode.commands.executeCommand("lashd.openSession", session.sessionId);
  }
}
