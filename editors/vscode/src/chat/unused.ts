import type { Memento } from "vscode";
import { messageOf, type Daemon } from "../daemon/daemon";
import type { Log } from "../daemon/link";
import { isUnused } from "../model/sessions";
import type { SessionView } from "../model/session";
import type { SessionID } from "../protocol";

/** The key of the sessions in the state of the workspace. */
const key = "lashd.unused";

/** Kind is the directory and the driver of a new session. */
interface Kind {
  cwd: string;
  driver?: string;
}

/**
 * UnusedSessions are the sessions that this window has created and that have no message yet. A new session uses an open one of them again, and they
 * are deleted when their chat is closed, so that none stays without a message.
 */
export class UnusedSessions {
  constructor(private readonly daemon: Daemon, private readonly state: Memento, private readonly log: Log) {}

  /** add remembers a session that was created. */
  add(id: SessionID, kind: Kind): void {
    this.store({ ...this.all, [id]: kind });
  }

  /** used forgets a session, because it has got a message. */
  used(id: SessionID): void {
    const { [id]: known, ...others } = this.all;
    if (known) {
      this.store(others);
    }
  }

  /** find returns an unused session of a kind among the open chats. */
  find({ cwd, driver }: Kind, open: ReadonlyMap<SessionID, SessionView | undefined>): SessionID | undefined {
    const { all } = this;
    return [...open].find(([id, view]) => all[id]?.cwd === cwd && all[id].driver === driver && view && isEmpty(view))?.[0];
  }

  /** closed deletes a session whose chat was closed, if it has no message. */
  async closed(id: SessionID, view: SessionView | undefined): Promise<void> {
    const known = this.all[id] !== undefined;
    this.used(id);
    if (!known || !view || !isEmpty(view) || this.daemon.state.kind !== "ready") {
      return;
    }
    try {
      await this.daemon.change("session/delete", { sessionId: id });
    } catch (error) {
      this.log.warn(`delete the unused session ${id}: ${messageOf(error)}`);
    }
  }

  private get all(): Record<SessionID, Kind | undefined> {
    return this.state.get(key, {});
  }

  private store(all: Record<SessionID, Kind | undefined>) {
    void this.state.update(key, all);
  }
}

/** isEmpty reports whether a session has had no message. */
function isEmpty({ session, items, queue, turnId, accepted, older }: SessionView): boolean {
  return isUnused(session) && items.length + queue.length + Object.keys(accepted).length === 0 && turnId === undefined && older === undefined;
}
