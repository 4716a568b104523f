import * as vscode from "vscode";
import { messageOf, type Daemon } from "../daemon/daemon";
import { age, isInFolders, titleOf } from "../model/sessions";
import type { NodeID, SessionID, SessionMatch } from "../protocol";
import type { Sessions } from "../sessions";
import { folders } from "./sessionTree";
import { labelText } from "../model/printable";

type Item = vscode.QuickPickItem & { sessionId: SessionID; nodeId?: NodeID };

/** How long the user must stop typing before a search. */
const typingPauseMs = 150;

/** findSession lets the user find a session by the words of its title and messages, and opens it at the message that matches. Without words it lists the newest ones. */
export function findSession(daemon: Daemon, sessions: Sessions, words = ""): void {
  const pick = Object.assign(vscode.window.createQuickPick<Item>(), { title: "Find a session", placeholder: "Words of a title or a message", matchOnDetail: true });
  let timer: NodeJS.Timeout | undefined;
  const search = async (query: string) => {
    pick.busy = true;
    try {
      const items = query.trim() === "" ? newest(sessions) : (await daemon.call("session/search", { query, distinct: true, limit: 50 })).data.filter((match) => isHere(match)).map(matchItem);
      if (pick.value === query) {
        pick.items = items;
      }
    } catch (error) {
      pick.items = [{ label: `$(error) ${labelText(messageOf(error))}`, alwaysShow: true, sessionId: "" }];
    } finally {
      pick.busy = false;
    }
  };
  pick.onDidChangeValue((query) => {
    clearTimeout(timer);
    timer = setTimeout(() => void search(query), typingPauseMs);
  });
  pick.onDidAccept(() => {
    const [item] = pick.activeItems;
    pick.hide();
    void (item?.sessionId && vscode.commands.executeCommand("lashd.openSession", item.sessionId, item.nodeId));
  });
  pick.onDidHide(() => (clearTimeout(timer), pick.dispose()));
  pick.items = newest(sessions);
  pick.show();
  pick.value = words;
  void (words === "" ? undefined : search(words));
}

function isHere({ cwd }: { cwd: string }): boolean {
  return isInFolders({ cwd }, folders());
}

function newest({ list }: Sessions): Item[] {
  const all = [...list.values()].filter((session) => isHere(session) && session.relation.parent === undefined).sort((a, b) => b.updatedAtMs - a.updatedAtMs);
  return all.map((session) => ({ label: labelText(titleOf(session)), description: age(session.updatedAtMs, Date.now()), sessionId: session.sessionId }));
}

/** matchItem shows a match. It is always shown: the daemon has searched, with other rules than the list. */
function matchItem({ sessionId, title, snippet, updatedAtMs, nodeId, left }: SessionMatch): Item {
  return { label: labelText(title ?? "") || `Session ${sessionId.slice(-6)}`, description: age(updatedAtMs, Date.now()), detail: labelText(snippet), alwaysShow: true, sessionId, ...(!left && { nodeId }) };
}
