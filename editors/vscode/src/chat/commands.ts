import type { Commands } from "../commands";
import type { Daemon } from "../daemon/daemon";
import type { Provider } from "../model/providers";
import type { Session, TurnID } from "../protocol";
import { sessionOf, type Node } from "../views/sessionTree";
import type { Traces } from "../views/traces";
import type { Chats } from "./chats";
import { chooseEffort, chooseMode, chooseModel } from "./settings";

/** chatCommands returns the commands on the active chat. local returns the model servers that run on this machine. */
export function chatCommands(daemon: Daemon, chats: Chats, traces: Traces, local: () => Promise<Provider[]>): Commands {
  const activeSession = (): Session => {
    const session = chats.active?.followed.view?.session;
    if (!session) {
      throw new Error("no chat is open; open a session first");
    }
    return session;
  };
  return {
    chooseModel: () => chooseModel(daemon, activeSession(), local),
    chooseEffort: () => chooseEffort(daemon, activeSession()),
    chooseMode: () => chooseMode(daemon, activeSession()),
    showTrace: (of: TurnID | Node | undefined) => (typeof of === "string" ? traces.show(of) : traces.pick(sessionOf(of) ?? activeSession().sessionId)),
    exportTrace: () => traces.save(),
  };
}
