import { Emitter } from "vscode-jsonrpc/node";
import { kindOf, messageOf, type Daemon } from "./daemon/daemon";
import type { Log } from "./daemon/link";
import { page, reduce, replay, snapshot, withTurnEnds, type SessionView } from "./model/session";
import { applyServerEvent, type SessionList } from "./model/sessions";
import type { Decision, Event, ServerEvent, Session, SessionID } from "./protocol";

/** Sessions holds the daemon's sessions and their open decisions. It reloads them on each connection and follows server events. */
export class Sessions {
  private readonly changes = new Emitter<void>();
  readonly onChange = this.changes.event;
  list: SessionList = new Map();
  /** open decisions of all sessions, oldest first */
  decisions: Decision[] = [];
  /** decisions is what the daemon said last; false without a connection */
  decisionsKnown = false;
  private latestLoad = 0;
  private readonly missed = new Set<ServerEvent[]>(); // for each load that runs, the events since it began

  constructor(private readonly daemon: Daemon, private readonly log: Log) {
    daemon.onServerEvent((news) => {
      const before = this.list;
      this.missed.forEach((events) => events.push(news));
      this.list = applyServerEvent(before, news);
      if (news.type === "session/changed" || news.type === "session/deleted") {
        const was = news.sessionId === undefined ? undefined : before.get(news.sessionId)?.state;
        void (was === "requiresAction" || news.session?.state === "requiresAction" ? this.loadDecisions() : undefined);
        this.changes.fire();
      }
    });
    daemon.onEvent((event) => void (event.type.startsWith("decision/") ? this.loadDecisions() : undefined));
    daemon.onState((state) => void (state.kind === "ready" ? this.load() : this.clearDecisions()));
  }

  /** load reads the sessions and the open decisions. Errors are logged. */
  async load(): Promise<void> {
    const missed: ServerEvent[] = [];
    this.missed.add(missed);
    try {
      await this.daemon.call("server/attach", {});
      const list = new Map<SessionID, Session>();
      let cursor: string | undefined;
      do {
        const r = await this.daemon.call("session/list", { children: true, limit: 200, ...(cursor && { cursor }) });
        r.data.forEach((session) => list.set(session.sessionId, session));
        cursor = r.nextCursor;
      } while (cursor && list.size < 2000);
      const archived = await this.daemon.call("session/list", { archived: true, children: true, limit: 200 });
      archived.data.forEach((session) => list.set(session.sessionId, session));
      this.list = missed.reduce<SessionList>(applyServerEvent, list);
    } catch (error) {
      this.log.warn(`list of sessions: ${messageOf(error)}`);
    }
    this.missed.delete(missed);
    await this.loadDecisions();
  }

  /** loadDecisions reads the open decisions. Only the newest of several concurrent loads takes effect. */
  private async loadDecisions() {
    const thisLoad = ++this.latestLoad;
    try {
      const { data } = await this.daemon.call("decision/list", {});
      if (thisLoad === this.latestLoad) {
        this.decisions = data.filter((decision) => decision.kind !== "completion");
        this.decisionsKnown = true;
        this.changes.fire();
      }
    } catch (error) {
      this.log.warn(`list of questions: ${messageOf(error)}`);
    }
  }

  /** clearDecisions removes all decisions while there is no connection: they cannot be answered. */
  private clearDecisions() {
    this.latestLoad++;
    this.decisions = [];
    this.decisionsKnown = false;
    this.changes.fire();
  }
}

/** Change is an update of a followed session: new events, or a whole new view. */
export type Change = { events: Event[] } | { view: SessionView };

/** FollowedSession is a session that this window is attached to. It attaches again after each reconnect. */
export class FollowedSession {
  private readonly changes = new Emitter<Change>();
  readonly onChange = this.changes.event;
  private readonly gone = new Emitter<string>();
  /** fires with the reason when the session does not exist any longer */
  readonly onGone = this.gone.event;
  view?: SessionView;
  private epoch?: number;
  private attaching = false;
  private buffered: Event[] = [];
  private readonly listening;

  constructor(private readonly daemon: Daemon, readonly id: SessionID, private readonly log: Log) {
    this.listening = [
      daemon.onEvent((event) => event.sessionId === id && this.apply(event)),
      daemon.onGap((gap) => gap.sessionId === id && void this.attach(false)),
      daemon.onState((state) => state.kind === "ready" && void this.attach(true)),
    ];
    if (daemon.state.kind === "ready") {
      void this.attach(false);
    }
  }

  /** older reads the page of items before the first item of the view. It returns undefined if there is none. */
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

  private apply(event: Event) {
    if (this.attaching) {
      this.buffered.push(event);
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

  /** attach attaches to the session. With resume it asks only for events after the view; otherwise it starts with a new view. */
  private async attach(resume: boolean) {
    const { server } = this.daemon.state.kind === "ready" ? this.daemon.state : {};
    if (this.attaching || !server) {
      return;
    }
    this.attaching = true;
    const cursor = resume && this.view && !this.view.stale ? { afterSeq: this.view.seq, epoch: this.epoch } : {};
    try {
      const r = await this.daemon.call("session/attach", { sessionId: this.id, ...cursor });
      this.buffered = []; // the answer includes them
      const restarted = !this.view || cursor.afterSeq === undefined || r.gap !== undefined;
      this.view = restarted || !this.view ? snapshot(r) : replay(this.view, r);
      this.epoch = this.daemon.state.kind === "ready" ? this.daemon.state.server.epoch : server.epoch;
      if (restarted) {
        await this.readTurnEnds();
      }
      this.changes.fire({ view: this.view });
    } catch (error) {
      this.attachFailed(error);
    } finally {
      this.attaching = false;
      this.buffered.splice(0).forEach((event) => this.apply(event));
    }
  }

  private async readTurnEnds() {
    const sessionId = this.id;
    const [turns, points] = await Promise.all([this.daemon.call("turn/list", { sessionId, limit: 50 }), this.daemon.call("session/points", { sessionId })]);
    const over = turns.data.filter((turn) => turn.outcome);
    const ends = over.map(({ turnId, outcome, usage, issues }) => ({ turnId, outcome, usage, message: issues?.at(-1)?.message, code: issues?.at(-1)?.code }));
    this.view &&= withTurnEnds(this.view, ends, points.data);
  }

  private attachFailed(error: unknown) {
    this.log.warn(`attach ${this.id}: ${messageOf(error)}`);
    if (kindOf(error) === "sessionNotFound" || kindOf(error) === "sessionDeleted") {
      this.gone.fire(messageOf(error));
    }
  }
}
