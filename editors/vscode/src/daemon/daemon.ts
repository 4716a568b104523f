import { randomUUID } from "node:crypto";
import { CancellationToken, ConnectionError, Emitter, ErrorCodes, ResponseError } from "vscode-jsonrpc/node";
import type { ErrorData, Event, Gap, InitializeResult, Methods, ServerEvent } from "../protocol";
import { Link, type Exit, type Log, type Method, type Params, type Program, type Result } from "./link";

/** Mutation is a method that takes an idempotency key. */
export type Mutation = { [M in Method]: "idempotencyKey" extends keyof Methods[M]["params"] ? M : never }[Method];

/**
 * State is the state of the connection. A failing connection has failed twice for the same reason, and is still retried. A failed one is
 * not retried automatically.
 */
export type State =
  | { kind: "connecting" }
  | { kind: "failing"; reason: string }
  | { kind: "ready"; server: InitializeResult }
  | { kind: "failed"; reason: string }
  | { kind: "closed" };

/** Config is the configuration of a Daemon. */
export interface Config {
  /** returns the program to run; if it throws, the connection fails with its message */
  program(): Program;
  version: string;
  log: Log;
}

// Exit codes after which a retry cannot succeed: the database is of a newer lashd, is not writable, or is in use by another daemon.
const permanentExitCodes = new Set([65, 74, 75]);
const minRetryMs = 200;
const maxRetryMs = 5000;
const connectTimeoutMs = 30_000;

/**
 * Daemon is a connection to the lashd daemon that reconnects automatically. After a reconnect it sends requests without an answer
 * again, with the same idempotency key, so that no change happens twice.
 */
export class Daemon {
  private readonly states = new Emitter<State>();
  private readonly events = new Emitter<Event>();
  private readonly gaps = new Emitter<Gap>();
  private readonly serverEvents = new Emitter<ServerEvent>();
  readonly onState = this.states.event;
  /** fires for events of attached sessions */
  readonly onEvent = this.events.event;
  readonly onGap = this.gaps.event;
  /** fires for server events, after a call of server/attach */
  readonly onServerEvent = this.serverEvents.event;
  /** stays the same across reconnects, so that the tools of this window and their calls keep their owner */
  readonly clientId = `vscode_${randomUUID().replaceAll("-", "")}`;

  private current: State = { kind: "closed" };
  private link?: Link;
  private timer?: NodeJS.Timeout;
  private retryMs = minRetryMs;
  private lastFailure?: string; // of the attempt before, if none has succeeded since

  constructor(private readonly config: Config) {}

  get state(): State {
    return this.current;
  }

  /** start connects, or reconnects at once. */
  start(): void {
    clearTimeout(this.timer);
    this.retryMs = minRetryMs;
    this.lastFailure = undefined;
    this.closeLink();
    this.setState({ kind: "connecting" });
    void this.connect();
  }

  /** close closes the connection. Running turns continue. */
  close(): void {
    clearTimeout(this.timer);
    this.closeLink();
    this.setState({ kind: "closed" });
  }

  /** call sends a request that changes nothing. It waits for a connection and repeats the request if the answer is lost. */
  async call<M extends Method>(method: M, params: Params<M>, token = CancellationToken.None): Promise<Result<M>> {
    for (;;) {
      const link = await this.readyLink();
      try {
        return await link.request(method, params, token);
      } catch (error) {
        if (!isAnswerLost(error) || token.isCancellationRequested || this.current.kind === "closed") {
          throw error;
        }
        this.config.log.info(`${method}: the answer was lost; sending the request again`);
        await this.awaitLinkEnd(link);
      }
    }
  }

  /** change sends a request that changes something. The change happens once, even if the connection is lost. */
  change<M extends Mutation>(method: M, params: Params<M>): Promise<Result<M>> {
    return this.call(method, { ...params, idempotencyKey: randomUUID() });
  }

  private async connect() {
    let link: Link;
    try {
      link = Link.start(this.config.program(), this.config.log);
    } catch (error) {
      this.setState({ kind: "failed", reason: messageOf(error) });
      return;
    }
    this.link = link;
    link.on("session/event", (event) => void this.events.fire(event));
    link.on("session/gap", (gap) => void this.gaps.fire(gap));
    link.on("server/event", (news) => void this.serverEvents.fire(news));
    void link.ended.then((exit) => this.linkEnded(link, exit));
    try {
      const server = await link.initialize({ clientInfo: { name: "vscode", version: this.config.version }, clientId: this.clientId });
      if (this.link === link) {
        this.retryMs = minRetryMs;
        this.lastFailure = undefined;
        this.setState({ kind: "ready", server });
      }
    } catch (error) {
      this.config.log.warn(`initialize: ${messageOf(error)}`);
      link.close();
    }
  }

  private linkEnded(link: Link, exit: Exit) {
    if (this.link !== link) {
      return;
    }
    this.link = undefined;
    const reason = exit.lastLine || `lashd exited with code ${exit.code}`;
    this.config.log.warn(`connection lost: ${reason}`);
    if (exit.code === null || permanentExitCodes.has(exit.code)) {
      this.setState({ kind: "failed", reason });
      return;
    }
    const again = this.lastFailure === reason && exit.lastLine !== "";
    this.lastFailure = this.current.kind === "ready" ? undefined : reason;
    this.setState(again ? { kind: "failing", reason } : { kind: "connecting" });
    this.timer = setTimeout(() => void this.connect(), this.retryMs);
    this.retryMs = Math.min(2 * this.retryMs, maxRetryMs);
  }

  private closeLink() {
    this.link?.close();
    this.link = undefined;
  }

  private setState(state: State) {
    this.current = state;
    this.states.fire(state);
  }

  /** readyLink waits for a connection. It throws if connecting fails, twice for the same reason, or takes too long. */
  private async readyLink(): Promise<Link> {
    await this.waitFor(() => this.current.kind !== "connecting");
    if (this.current.kind === "ready" && this.link) {
      return this.link;
    }
    throw new Error("reason" in this.current ? this.current.reason : "lashd is not connected");
  }

  /** awaitLinkEnd waits for the end of a link that lost an answer. After a second it closes the link. */
  private async awaitLinkEnd(link: Link) {
    await Promise.race([link.ended, new Promise((resolve) => setTimeout(resolve, 1000))]);
    if (this.link === link) {
      this.closeLink();
      this.linkEnded(link, { code: 5, lastLine: "" });
    }
  }

  private waitFor(holds: () => boolean): Promise<void> {
    if (holds()) {
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => finish(() => reject(new Error(`lashd did not answer within ${connectTimeoutMs / 1000} s`))), connectTimeoutMs);
      const listening = this.onState(() => holds() && finish(resolve));
      const finish = (settle: () => void) => {
        clearTimeout(late);
        listening.dispose();
        settle();
      };
    });
  }
}

const lostAnswerCodes = new Set<number>([ErrorCodes.PendingResponseRejected, ErrorCodes.MessageWriteError, ErrorCodes.MessageReadError]);

/** isAnswerLost reports whether a request got no answer from the daemon. The daemon may have executed it. */
function isAnswerLost(error: unknown): boolean {
  if (error instanceof ResponseError) {
    const data = error.data as ErrorData | undefined;
    return lostAnswerCodes.has(error.code) || (data?.kind === "shuttingDown" && data.retry === "now");
  }
  return error instanceof ConnectionError;
}

/** messageOf returns the message of an error. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** kindOf returns the kind of a daemon error, such as "sessionNotFound", or undefined for other errors. */
export function kindOf(error: unknown): string | undefined {
  return error instanceof ResponseError ? (error.data as ErrorData | undefined)?.kind : undefined;
}
