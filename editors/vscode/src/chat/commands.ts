import { workspace } from "vscode";
import type { Commands } from "../commands";
import type { Daemon } from "../daemon/daemon";
import type { Session, SessionID, TurnID } from "../protocol";
import { showInstructions } from "../views/instructions";
import { sessionOf, type Node } from "../views/sessionTree";
import { showRules, type Place } from "../views/rules";
import type { Texts } from "../views/textDocuments";
import type { Traces } from "../views/traces";
import type { Chats } from "./chats";
import { context } from "./artifacts";
import { showHelp } from "./help";
import { goBack, newestChanges, undoNewest, type Chat } from "./turnCommands";
import { chooseEffort, chooseMode, chooseModel, chooseSandbox } from "./settings";

/** chatCommands returns the commands on the active chat. */
export function chatCommands(daemon: Daemon, texts: Texts, chats: Chats, traces: Traces): Commands {
  const editor = { daemon, texts, say: chats.say };
  const activeSession = (): Session => {
    const session = chats.active?.followed.view?.session;
    if (!session) {
      throw new Error("no chat is open; open a session first");
    }
    return session;
  };
  const activeChat = (): Chat => {
    const session = activeSession();
    return { session, items: chats.active?.followed.view?.items ?? [], give: (message) => chats.give(session.sessionId, message) };
  };
  return {
    help: () => showHelp(daemon, chats.say, activeSession().sessionId, activeChat().give),
    undoTurn: () => undoNewest(editor, activeChat()),
    goBack: () => goBack(editor, activeChat()),
    newestChanges: () => newestChanges(editor, activeSession()),
    showContext: async () => {
      const { sessionId } = activeSession();
      chats.give(sessionId, { ...(await context(daemon, sessionId)), open: true });
    },
    chooseModel: () => chooseModel(daemon, activeSession()),
    chooseEffort: () => chooseEffort(daemon, activeSession()),
    chooseMode: () => chooseMode(daemon, activeSession()),
    chooseSandbox: () => chooseSandbox(daemon, activeSession()),
    showTrace: (of: TurnID | Node | undefined) => (typeof of === "string" ? traces.show(of) : traces.pick(sessionOf(of) ?? activeSession().sessionId)),
    showRules: () => showRules(daemon, placeOf(chats.active?.followed.id)),
    showInstructions: (_: undefined, text = "") => showInstructions(daemon, activeSession().sessionId, text),
    exportTrace: () => traces.save(),
  };
}

/** placeOf returns the session of the active chat, else the first folder of the window. */
function placeOf(sessionId: SessionID | undefined): Place {
  return sessionId === undefined ? { cwd: workspace.workspaceFolders?.[0]?.uri.fsPath } : { sessionId };
}
