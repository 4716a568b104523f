import { Emitter } from "vscode-jsonrpc/node";
import { kindOf, messageOf, type Daemon } from "./daemon/daemon";
import type { Log } from "./daemon/link";
import { page, reduce, replay, snapshot, withPast, type SessionView } from "./model/session";
import { told, type SessionList } from "./model/sessions";
import type { Decision, Event, SessionID } from "./protocol";

/** Sessions is what this window knows of all sessions of the daemon, and of the questions that they ask. */
export class Sessions {
  private readonly changes = new Emitter<void>();
  readonly onChange = this.changes.event;
  list: SessionList = new Map();
  /** open questions of all sessions, the oldest first */
  decisions: Decision[] = [];
  private asked = 0;

  constructor(private readonly daemon: Daemon, private readonly log: Log) {
    daemon.onNews((news) => {
      const before = this.list;
      this.list = told(before, news);
      if (news.type === "session/changed" || news.type === "session/deleted") {
        const was = news.sessionId === undefined ? undefined : before.get(news.sessionId)?.state;
        void (was === "requiresAction" || news.session?.state === "requiresAction" ? this.ask() : undefined);
        this.changes.fire();
      }
    });
    daemon.onEvent((event) => void (event.type.startsWith("decision/") ? this.ask() : undefined));
    daemon.onState((state) => void (state.kind === "ready" ? this.load() : this.forget()));
  }

  /** load reads everything anew. */
  async load(): Promise<void> {
    try {
      await this.daemon.call("server/attach", {});
      const list = new Map();
      let cursor: string | undefined;
      do {
        const r = await this.daemon.call("session/list", { children: true, limit: 200, ...(cursor && { cursor }) });
        r.data.forEach((session) => list.set(session.sessionId, session));
        cursor = r.nextCursor;
      } while (cursor && list.size < 2000);
      const archived = await this.daemon.call("session/list", { archived: true, children: true, limit: 200 });
      archived.data.forEach((session) => list.set(session.sessionId, session));
      this.list = list;
    } catch (error) {
      this.log.warn(`list of sessions: ${messageOf(error)}`);
    }
    await this.ask();
  }

  /** ask reads which questions are open; of several answers the newest counts */
  private async ask() {
    const mine = ++this.asked;
    try {
      const { data } = await this.daemon.call("decision/list", {});
      if (mine === this.asked) {
        this.decisions = data.filter((decision) => decision.kind !== "completion");
        this.changes.fire();
      }
    } catch (error) {
      this.log.warn(`list of questions: ${messageOf(error)}`);
    }
  }

  /** A daemon that is gone asks nothing. */
  private forget() {
    this.asked++;
    this.decisions = [];
    this.changes.fire();
  }
}

/** Change is what happened to a followed session: events to fold, or a view to begin with. */
export type Change = { events: Event[] } | { view: SessionView };

/** Followed is a session that this window is attached to. It stays attached over losses of the connection. */
export class Followed {
  private readonly changes = new Emitter<Change>();
  readonly onChange = this.changes.event;
  private readonly gone = new Emitter<string>();
  /** says why there is nothing to follow any more */
  readonly onGone = this.gone.event;
  view?: SessionView;
  private epoch?: number;
  private attaching = false;
  private held: Event[] = [];
  private readonly listening;

  constructor(private readonly daemon: Daemon, readonly id: SessionID, private readonly log: Log) {
    this.listening = [
      daemon.onEvent((event) => event.sessionId === id && this.take(event)),
      daemon.onGap((gap) => gap.sessionId === id && void this.attach(false)),
      daemon.onState((state) => state.kind === "ready" && void this.attach(true)),
    ];
    if (daemon.state.kind === "ready") {
      void this.attach(false);
    }
  }

  /** older reads a page of items before those that are shown. */
  async older() {
    if (this.view?.older === undefined) {
      return undefined;
    }
    const r = await this.daemon.call("session/read", { sessionId: this.id, cursor: this.view.older, limit: 200 });
    this.view = page(this.view, r);
    return r;
  }

  close(): void {
    this.listening.forEach((listener) => listener.dispose());
    if (this.daemon.state.kind === "ready") {
      this.daemon.call("session/detach", { sessionId: this.id }).catch((error) => this.log.debug(messageOf(error)));
    }
  }

  private take(event: Event) {
    if (this.attaching) {
      this.held.push(event);
      return;
    }
    if (this.view) {
      this.view = reduce(this.view, [event]);
      this.changes.fire({ events: [event] });
      if (this.view.stale) {
        void this.attach(false);
      }
    }
  }

  /** attaches with the cursor of the view, or without one */
  private async attach(again: boolean) {
    const { server } = this.daemon.state.kind === "ready" ? this.daemon.state : {};
    if (this.attaching || !server) {
      return;
    }
    this.attaching = true;
    const cursor = again && this.view && !this.view.stale ? { afterSeq: this.view.seq, epoch: this.epoch } : {};
    try {
      const r = await this.daemon.call("session/attach", { sessionId: this.id, ...cursor });
      this.held = []; // what came before the answer is in it
      const fresh = !this.view || cursor.afterSeq === undefined || r.gap !== undefined;
      this.view = fresh || !this.view ? snapshot(r) : replay(this.view, r);
      this.epoch = this.daemon.state.kind === "ready" ? this.daemon.state.server.epoch : server.epoch;
      if (fresh) {
        await this.readPast();
      }
      this.changes.fire({ view: this.view });
    } catch (error) {
      this.fail(error);
    } finally {
      this.attaching = false;
      this.held.splice(0).forEach((event) => this.take(event));
    }
  }

  private async readPast() {
    const sessionId = this.id;
    const [turns, points] = await Promise.all([this.daemon.call("turn/list", { sessionId, limit: 50 }), this.daemon.call("session/points", { sessionId })]);
    const over = turns.data.filter((turn) => turn.outcome);
    const ends = over.map(({ turnId, outcome, usage, issues }) => ({ turnId, outcome, usage, message: issues?.at(-1)?.message }));
    this.view &&= withPast(this.view, ends, points.data);
  }

  private fail(error: unknown) {
    this.log.warn(`attach ${this.id}: ${messageOf(error)}`);
    if (kindOf(error) === "sessionNotFound" || kindOf(error) === "sessionDeleted") {
      this.gone.fire(messageOf(error));
    }
  }
}
