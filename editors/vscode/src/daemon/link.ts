import { spawn, type ChildProcess } from "node:child_process";
import {
  CancellationToken,
  StreamMessageReader,
  StreamMessageWriter,
  createMessageConnection,
  type Disposable,
  type MessageConnection,
} from "vscode-jsonrpc/node";
import type { InitializeParams, InitializeResult, Methods, Notifications } from "../protocol";

/** Log receives log messages. vscode.LogOutputChannel implements it. */
export interface Log {
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

/** Program is the command line and environment of lashd. */
export interface Program {
  command: string;
  args: string[];
  env: NodeJS.ProcessEnv;
}

/** Exit describes the end of a link. */
export interface Exit {
  code: number | null;
  /** the last line on stderr, or the error that prevented the start */
  lastLine: string;
}

export type Method = keyof Methods;
export type Params<M extends Method> = Methods[M]["params"];
export type Result<M extends Method> = Methods[M]["result"];

/** Link is one connection to the daemon, through a "lashd stdio" process. It ends when that process or the daemon ends. */
export class Link {
  readonly ended: Promise<Exit>;
  private readonly rpc: MessageConnection;
  private lastLine = "";

  private constructor(private readonly child: ChildProcess, log: Log) {
    if (!child.stdout || !child.stdin || !child.stderr) {
      throw new Error("lashd was started without pipes");
    }
    child.stdin.on("error", (error) => log.debug(`write to lashd: ${error.message}`));
    child.stderr.setEncoding("utf8").on("data", (text: string) => this.logOutput(text, log));
    this.rpc = createMessageConnection(new StreamMessageReader(child.stdout), new StreamMessageWriter(child.stdin));
    this.rpc.onError(([error]) => log.warn(`connection: ${error.message}`));
    this.ended = new Promise((resolve) => {
      child.once("error", (error) => resolve({ code: null, lastLine: error.message }));
      child.once("close", (code) => resolve({ code, lastLine: this.lastLine }));
    });
    void this.ended.then(() => this.rpc.dispose());
  }

  /** start runs the program. Call initialize next. */
  static start(program: Program, log: Log): Link {
    const child = spawn(program.command, program.args, { env: program.env, stdio: "pipe", windowsHide: true });
    return new Link(child, log);
  }

  /** initialize opens the connection. Add listeners first: events can follow at once. */
  initialize(params: InitializeParams): Promise<InitializeResult> {
    this.rpc.listen();
    return this.request("initialize", params);
  }

  request<M extends Method>(method: M, params: Params<M>, token = CancellationToken.None): Promise<Result<M>> {
    return this.rpc.sendRequest<Result<M>>(method, params, token);
  }

  on<N extends keyof Notifications>(notification: N, listener: (params: Notifications[N]) => void): Disposable {
    return this.rpc.onNotification(notification, listener);
  }

  /** close ends the process by closing its stdin, or kills it after two seconds. The daemon keeps running. */
  close(): void {
    this.child.stdin?.end();
    const late = setTimeout(() => this.child.kill(), 2000);
    void this.ended.then(() => clearTimeout(late));
  }

  private logOutput(text: string, log: Log) {
    for (const line of text.split("\n").filter((line) => line.trim() !== "")) {
      this.lastLine = line;
      log.info(`lashd: ${line}`);
    }
  }
}
