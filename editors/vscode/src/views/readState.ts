import type { Memento } from "vscode";
import type { Seq, Session, SessionID } from "../protocol";

const key = "lashd.seen";

/** ReadState stores up to which event the user has seen each session. It survives restarts of the editor. */
export class ReadState {
  private readonly readSeqs: Record<SessionID, Seq>;

  constructor(private readonly memento: Memento) {
    this.readSeqs = { ...memento.get<Record<SessionID, Seq>>(key) };
  }

  /** mark records that the events up to seq were shown, and reports whether some of them are new. */
  mark(id: SessionID, seq: Seq): boolean {
    const isNew = (this.readSeqs[id] ?? -1) < seq;
    if (isNew) {
      this.readSeqs[id] = seq;
      void this.memento.update(key, this.readSeqs);
    }
    return isNew;
  }

  /** forget removes a deleted session. */
  forget(id: SessionID): void {
    delete this.readSeqs[id];
    void this.memento.update(key, this.readSeqs);
  }

  /** unread reports whether the session has newer events. A session that was never opened here is not unread. */
  unread(session: Session): boolean {
    const seen = this.readSeqs[session.sessionId];
    return seen !== undefined && seen < session.seq;
  }
}
