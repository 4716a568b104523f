import type { Memento } from "vscode";
import type { Seq, Session, SessionID } from "../protocol";

const key = "lashd.seen";

/** Seen remembers how far a person has seen each session, over restarts of the editor. */
export class Seen {
  private readonly upTo: Record<SessionID, Seq>;

  constructor(private readonly memento: Memento) {
    this.upTo = { ...memento.get<Record<SessionID, Seq>>(key) };
  }

  /** mark says that all of a session up to a seq was shown. */
  mark(id: SessionID, seq: Seq): void {
    if ((this.upTo[id] ?? -1) < seq) {
      this.upTo[id] = seq;
      void this.memento.update(key, this.upTo);
    }
  }

  /** forget lets go of a session that was deleted. */
  forget(id: SessionID): void {
    delete this.upTo[id];
    void this.memento.update(key, this.upTo);
  }

  /** unread tells whether something happened since. What was never opened here is not unread. */
  unread(session: Session): boolean {
    const seen = this.upTo[session.sessionId];
    return seen !== undefined && seen < session.seq;
  }
}
