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

/** Log takes what is worth telling. vscode.LogOutputChannel is one. */
export interface Log {
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

/** Program is how lashd is started. */
export interface Program {
  command: string;
  args: string[];
  env: NodeJS.ProcessEnv;
}

/** Exit is how a link ended. */
export interface Exit {
  code: number | null;
  /** the last line that the program said */
  said: string;
}

export type Method = keyof Methods;
export type Params<M extends Method> = Methods[M]["params"];
export type Result<M extends Method> = Methods[M]["result"];

/** Link is one connection to the daemon, through a process that forwards to it. It ends for good when either goes. */
export class Link {
  readonly ended: Promise<Exit>;
  private readonly rpc: MessageConnection;
  private said = "";

  private constructor(private readonly child: ChildProcess, log: Log) {
    if (!child.stdout || !child.stdin || !child.stderr) {
      throw new Error("lashd was started without pipes");
    }
    child.stdin.on("error", (error) => log.debug(`write to lashd: ${error.message}`));
    child.stderr.setEncoding("utf8").on("data", (text: string) => this.hear(text, log));
    this.rpc = createMessageConnection(new StreamMessageReader(child.stdout), new StreamMessageWriter(child.stdin));
    this.rpc.onError(([error]) => log.warn(`connection: ${error.message}`));
    this.ended = new Promise((resolve) => {
      child.once("error", (error) => resolve({ code: null, said: error.message }));
      child.once("close", (code) => resolve({ code, said: this.said }));
    });
    void this.ended.then(() => this.rpc.dispose());
  }

  /** start runs the program; initialize comes next. */
  static start(program: Program, log: Log): Link {
    const child = spawn(program.command, program.args, { env: program.env, stdio: "pipe", windowsHide: true });
    return new Link(child, log);
  }

  /** initialize opens the connection. Listeners are set before: events may follow at once. */
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

  /** close lets the daemon go: the end of its input ends the process, and whatever the daemon does goes on. */
  close(): void {
    this.child.stdin?.end();
    const late = setTimeout(() => this.child.kill(), 2000);
    void this.ended.then(() => clearTimeout(late));
  }

  private hear(text: string, log: Log) {
    for (const line of text.split("\n").filter((line) => line.trim() !== "")) {
      this.said = line;
      log.info(`lashd: ${line}`);
    }
  }
}
