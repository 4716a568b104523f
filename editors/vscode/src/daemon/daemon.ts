import { randomUUID } from "node:crypto";
import { CancellationToken, ConnectionError, Emitter, ErrorCodes, ResponseError } from "vscode-jsonrpc/node";
import type { ErrorData, Event, Gap, InitializeResult, Methods, ServerEvent } from "../protocol";
import { Link, type Exit, type Log, type Method, type Params, type Program, type Result } from "./link";

/** Mutation is a method that takes an idempotency key. */
export type Mutation = { [M in Method]: "idempotencyKey" extends keyof Methods[M]["params"] ? M : never }[Method];

/** State is how the connection is. Only a failed one is not tried again by itself. */
export type State =
  | { kind: "connecting"; reason?: string }
  | { kind: "ready"; server: InitializeResult }
  | { kind: "failed"; reason: string }
  | { kind: "closed" };

/** Config is what a Daemon needs. */
export interface Config {
  /** says what to run; an error of it is told, and nothing is started */
  program(): Program;
  version: string;
  log: Log;
}

// A daemon that another try cannot help: the database is of a newer lashd, cannot be written, or is held by another one.
const hopeless = new Set([65, 74, 75]);
const firstWait = 200;
const longestWait = 5000;
const patience = 30_000;

/**
 * Daemon is the connection to lashd that outlives both: it is made again whenever it ends. Requests whose answer was
 * lost are made again, with the same idempotency key, so that nothing is done twice.
 */
export class Daemon {
  private readonly states = new Emitter<State>();
  private readonly events = new Emitter<Event>();
  private readonly gaps = new Emitter<Gap>();
  private readonly news = new Emitter<ServerEvent>();
  readonly onState = this.states.event;
  /** comes for sessions that are attached */
  readonly onEvent = this.events.event;
  readonly onGap = this.gaps.event;
  /** comes once server/attach was asked for */
  readonly onNews = this.news.event;
  /** the same for as long as this is: its tools and their calls stay its own */
  readonly clientId = `vscode_${randomUUID().replaceAll("-", "")}`;

  private current: State = { kind: "closed" };
  private link?: Link;
  private timer?: NodeJS.Timeout;
  private wait = firstWait;

  constructor(private readonly config: Config) {}

  get state(): State {
    return this.current;
  }

  /** start connects, or does so again at once. */
  start(): void {
    clearTimeout(this.timer);
    this.wait = firstWait;
    this.drop();
    void this.connect();
  }

  /** close ends the connection. Turns go on without it. */
  close(): void {
    clearTimeout(this.timer);
    this.drop();
    this.become({ kind: "closed" });
  }

  /** call asks for something that changes nothing. */
  async call<M extends Method>(method: M, params: Params<M>, token = CancellationToken.None): Promise<Result<M>> {
    for (;;) {
      const link = await this.ready();
      try {
        return await link.request(method, params, token);
      } catch (error) {
        if (!lost(error) || token.isCancellationRequested || this.current.kind === "closed") {
          throw error;
        }
        this.config.log.info(`${method}: the answer was lost; sending the request again`);
        await this.gone(link);
      }
    }
  }

  /** change has something done, once, however often the connection is lost. */
  change<M extends Mutation>(method: M, params: Params<M>): Promise<Result<M>> {
    return this.call(method, { ...params, idempotencyKey: randomUUID() });
  }

  private async connect() {
    this.become({ kind: "connecting" });
    let link: Link;
    try {
      link = Link.start(this.config.program(), this.config.log);
    } catch (error) {
      this.become({ kind: "failed", reason: messageOf(error) });
      return;
    }
    this.link = link;
    link.on("session/event", (event) => void this.events.fire(event));
    link.on("session/gap", (gap) => void this.gaps.fire(gap));
    link.on("server/event", (news) => void this.news.fire(news));
    void link.ended.then((exit) => this.end(link, exit));
    try {
      const server = await link.initialize({ clientInfo: { name: "vscode", version: this.config.version }, clientId: this.clientId });
      if (this.link === link) {
        this.wait = firstWait;
        this.become({ kind: "ready", server });
      }
    } catch (error) {
      this.config.log.warn(`initialize: ${messageOf(error)}`);
      link.close();
    }
  }

  private end(link: Link, exit: Exit) {
    if (this.link !== link) {
      return;
    }
    this.link = undefined;
    const reason = exit.said || `lashd exited with code ${exit.code}`;
    this.config.log.warn(`connection lost: ${reason}`);
    if (exit.code === null || hopeless.has(exit.code)) {
      this.become({ kind: "failed", reason });
      return;
    }
    this.become({ kind: "connecting", reason });
    this.timer = setTimeout(() => void this.connect(), this.wait);
    this.wait = Math.min(2 * this.wait, longestWait);
  }

  private drop() {
    this.link?.close();
    this.link = undefined;
  }

  private become(state: State) {
    this.current = state;
    this.states.fire(state);
  }

  /** waits for a connection that can be used */
  private async ready(): Promise<Link> {
    await this.until(() => this.current.kind !== "connecting");
    if (this.current.kind === "ready" && this.link) {
      return this.link;
    }
    throw new Error(this.current.kind === "failed" ? this.current.reason : "lashd is not connected");
  }

  /** waits until a link whose answers are lost is known to be gone */
  private async gone(link: Link) {
    await Promise.race([link.ended, new Promise((resolve) => setTimeout(resolve, 1000))]);
    if (this.link === link) {
      this.drop();
      this.end(link, { code: 5, said: "" });
    }
  }

  private until(holds: () => boolean): Promise<void> {
    if (holds()) {
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => finish(() => reject(new Error(`lashd did not answer within ${patience / 1000} s`))), patience);
      const listening = this.onState(() => holds() && finish(resolve));
      const finish = (settle: () => void) => {
        clearTimeout(late);
        listening.dispose();
        settle();
      };
    });
  }
}

const unanswered = new Set<number>([ErrorCodes.PendingResponseRejected, ErrorCodes.MessageWriteError, ErrorCodes.MessageReadError]);

/** lost tells whether a request had no answer of the daemon. What it was to do may have been done. */
function lost(error: unknown): boolean {
  if (error instanceof ResponseError) {
    const data = error.data as ErrorData | undefined;
    return unanswered.has(error.code) || (data?.kind === "shuttingDown" && data.retry === "now");
  }
  return error instanceof ConnectionError;
}

/** messageOf is what a person is told of an error. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** kindOf is the stable word of an error of the daemon, if it is one. */
export function kindOf(error: unknown): string | undefined {
  return error instanceof ResponseError ? (error.data as ErrorData | undefined)?.kind : undefined;
}
