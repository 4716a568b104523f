import type { Commands } from "../commands";
import type { Daemon } from "../daemon/daemon";
import type { Session, TurnID } from "../protocol";
import { sessionOf, type Node } from "../views/sessionTree";
import type { Traces } from "../views/traces";
import type { Chats } from "./chats";
import { chooseMode, chooseModel } from "./settings";

/** chatCommands are those of the chat in front. */
export function chatCommands(daemon: Daemon, chats: Chats, traces: Traces): Commands {
  const here = (): Session => {
    const session = chats.active?.followed.view?.session;
    if (!session) {
      throw new Error("no chat is open; open a session first");
    }
    return session;
  };
  return {
    chooseModel: () => chooseModel(daemon, here()),
    chooseMode: () => chooseMode(daemon, here()),
    showTrace: (of: TurnID | Node | undefined) => (typeof of === "string" ? traces.show(of) : traces.pick(sessionOf(of) ?? here().sessionId)),
    exportTrace: () => traces.save(),
  };
}
