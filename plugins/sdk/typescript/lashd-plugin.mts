/**
 * lashd plugins in TypeScript. Copy this file next to yours. It needs Node 22.18, which runs it without a build, and no packages.
 *
 *     import { Plugin, deny } from "./lashd-plugin.mts";
 *
 *     const plugin = new Plugin();
 *     plugin.hook("beforeToolCall", (call, context) => {
 *       if (context.tool === "shell" && String(context.args?.command).includes("rm -rf")) return deny("not here");
 *     });
 *     plugin.run();
 *
 * Everything that plugin.json declares needs a handler, and each handler a declaration. Otherwise lashd rejects the plugin and
 * logs the differences. Handlers may be async, and may run at the same time. An exception or rejection fails its call. Output goes
 * to the plugin's log. docs/plugin-reference.md describes the hooks, docs/plugin-protocol.md the messages. */
import { Buffer } from "node:buffer";
import process from "node:process";

const protocolVersion = 1;
const maxMessage = 8 << 20; // bytes; lashd ends a plugin that sends a longer message
const maxPart = 4 << 20; // bytes of values of code cells in one message
const maxInline = 1 << 20; // bytes of artifacts in one message; larger ones are sent in pieces
export type Json = any;
type Maybe<T> = T | null | undefined | void;
type Awaitable<T> = T | Promise<T>;

export interface Part { kind: string; text?: string; call?: Json; result?: Json; [more: string]: Json }
export interface Message { role: string; content?: string; parts?: Part[]; origin?: Json }
export interface Prompt { slot: string; title?: string; priority?: number; tools?: string[]; content: string }
export interface NodeBody { message?: Message; plugin?: { type: string; body: Json } }
export interface View { session?: Json; window?: number; turnOptions?: Json }
export interface Tool { name: string; description: string; input?: Json; kind?: string; contract?: { replay?: string; serial?: boolean; timeoutMs?: number } }
/** An event for clients: a status (key, label, detail), or custom (name, payload). */
export interface RuntimeEvent { kind: "status" | "custom"; key?: string; label?: string; detail?: string; name?: string; payload?: Json }
export interface Directive { kind: string; [more: string]: Json }
/** A call before it runs. */
export interface ToolCallContext { turnId: string; callId: string; parent?: string; tool: string; kind?: string; replay?: string; serial?: boolean; cell?: boolean; args: Json }
/** A call after it ran. */
export interface ToolResultContext extends ToolCallContext { attempt: number; output: Output; durationMs: number }
/** A turn before it starts; view is null if there is no session, as in tests. */
export interface TurnContext { turnId: string; view: View | null; input?: Message[]; inputs?: Json }
export interface CheckpointContext { turnId: string; kind: "afterWork" | "beforeCompletion"; view: View | null }
/** The result of a turn. */
export interface TurnSummary { turnId: string; report: Json; window?: number; context?: number }
/** A piece of streamed text. abort ends the reply. */
export interface StreamChunk { text: string; reasoning?: string[]; events?: RuntimeEvent[]; abort?: boolean }
/** A complete reply. */
export interface Response { parts: Part[] | null; stop?: string; events?: RuntimeEvent[] }
/** The history that the model sees, and additional tools for the turn. */
export interface PreparedContext { view?: View | null; messages: Message[] | null; prompts?: Prompt[]; withoutBase?: boolean; tools?: Tool[] }
export interface ConfigChange { previous: Json; current: Json; config: Json }
export interface StreamEnd { reason: "complete" | "aborted" | "cancelled" | "providerError" | "attemptReset" }
export interface LifecycleEvent { kind: "turnFinalized" | "turnPersisted" | "sessionRestored" | "sessionConfigChanged"; report?: Json; view?: View; previous?: Json; current?: Json }
export interface CompactRequest { view: View | null; instructions?: string }
export interface CatalogContext { sessionId?: string; manifests: Tool[] | null; authority: Json } // all tools that a session could have

/** The output of a tool call. */
export interface Output { status: "success" | "failure" | "cancelled"; text?: string; value?: Json; failure?: Json; [more: string]: Json }
/** An output that also ends or redirects the turn. */
export class Result {
  output: Output;
  control: Json;
  /** control is {kind: "finish", value} or similar. */
  constructor(output: Output, control?: Json) { [this.output, this.control] = [output, control]; }
}
/** The result of a command or a task. */
export class Outcome {
  output: Json;
  events: { type: string; body: Json }[];
  queue: Json[]; // turns, {input, sourceKey}
  constructor(output?: Json, events: { type: string; body: Json }[] = [], queue: Json[] = []) { [this.output, this.events, this.queue] = [output, events, queue]; }
}
type Directives = Maybe<Directive | Directive[]>;
/** The contexts and results of hooks. No result means no change. */
export interface Hooks {
  beforeTurn: [TurnContext, Directives]; checkpoint: [CheckpointContext, Directives]; afterTurn: [TurnSummary, Directives];
  beforeToolCall: [ToolCallContext, Directives]; afterToolCall: [ToolResultContext, Directives];
  prompt: [TurnContext, Maybe<string | Prompt | (string | Prompt)[]>];
  assistantStream: [StreamChunk, Maybe<string | StreamChunk>];
  assistantResponse: [Response, Maybe<Response>];
  projectToolResult: [ToolResultContext, Maybe<Output>]; configChanged: [ConfigChange, Maybe<Json>];
  event: [LifecycleEvent, Maybe<never>]; streamFinished: [StreamEnd, Maybe<never>];
  transformContext: [PreparedContext, Maybe<PreparedContext>]; projectProse: [{ text: string }, Maybe<string>];
  compact: [CompactRequest, Maybe<NodeBody | NodeBody[]>]; catalog: [CatalogContext, Maybe<string | string[]>];
}

/** Returns a success. The model reads the text, or else the value. */
export const succeed = (text = "", value?: Json): Output => (value === undefined ? { status: "success", text } : { status: "success", text, value });
/** Returns a failure of a class such as execution or permissionDenied. */
export const fail = (message: string, code = "failed", kind = "execution"): Output =>
  ({ status: "failure", text: message, failure: { class: kind, code, message, source: "plugin" } });
/** Before a call: denies it. The model reads the message. */
export const deny = (message: string, code = "denied"): Directive => shortCircuit(fail(message, code, "permissionDenied"));
/** Before a call: returns this output without running it. After a call: replaces its output. */
export const shortCircuit = (output: Output): Directive => ({ kind: "short_circuit_tool", output });
/** Before a call: replaces its arguments. */
export const replaceArgs = (args: Json): Directive => ({ kind: "replace_tool_args", args });
/** Before a call: requires approval. default is the answer after the deadline: reject or allow. */
export const askFirst = (reason: string, more: { deadlineMs?: number; default?: string } = {}): Directive =>
  ({ kind: "require_approval", approval: { reason, ...more } });
/** Ends the turn, or fails the call. */
export const abort = (code: string, message: string): Directive => ({ kind: "abort_turn", code, message });
/** Adds messages to the conversation. A string is a user message. */
export const enqueue = (...messages: (string | Message)[]): Directive =>
  ({ kind: "enqueue_messages", messages: messages.map((m) => (typeof m === "string" ? { role: "user", content: m } : m)) });
/** Creates a session. session has the params of session/new. */
export const createSession = (session: Json): Directive => ({ kind: "create_session", session });
/** Sends events to clients. */
export const tell = (...events: RuntimeEvent[]): Directive => ({ kind: "emit_runtime_events", events });
/** Adds a record to the trace. */
export const trace = (name: string, payload?: Json): Directive => ({ kind: "emit_trace", trace: { name, payload } });
/** After a turn: compacts history before the next one. */
export const compact = (): Directive => ({ kind: "compact_history" });
/** Returns a message node, for the result of the compact hook. */
export const messageNode = (text: string, role = "user"): NodeBody => ({ message: { role, parts: [{ kind: "text", text }] } });
/** Throw it to fail a call with a message, without a stack in the log. */
export class PluginError extends Error { code = -32000; }
class UnknownError extends PluginError { override code = -32601; }
/** lashd rejected a host call, or the call failed. kind is denied, unavailable, invalidParams, ... */
export class HostError extends PluginError {
  kind = "";
  constructor(error: Json) { super(error.message); this.kind = error.data?.kind ?? ""; }
}

/** An open session. lashd stores state and artifacts. Change state only within change(). */
export class Session<S> {
  instance = "";
  sessionId = ""; // empty: an operation without a session
  parentSessionId = "";
  cwd = "";
  options: Json; toolAccess: Json; subagent: Json; extensions: Json;
  state: S; // any JSON
  artifacts = new Map<string, Uint8Array>();
  values = new Map<string, Json>(); // lost when the process ends
  unsent = new Map<string, Uint8Array>(); // values of code cells: of a snapshot, and of a restore
  sending?: CodeChange; // whose values are unsent
  arriving = new Map<string, Uint8Array>();
  tools: Json[] = []; // of the last code cell; lashd sends them again when they change
  revision = 0;
  #plugin: Plugin<S>;
  constructor(plugin: Plugin<S>, state: S, params: Json) {
    [this.#plugin, this.state] = [plugin, state];
    Object.assign(this, params);
  }
  /** Calls f to change state, and notifies lashd. */
  change<T>(f: (state: S) => T): T {
    try {
      return f(this.state);
    } finally {
      this.#plugin.notify("snapshot/changed", { instance: this.instance, revision: ++this.revision });
    }
  }
  /** Makes lashd request the list of tools again. */
  toolsChanged(): void { this.#plugin.notify("tools/changed", { instance: this.instance }); }
}

/** A call from lashd. */
export class Call<S> {
  session: Session<S>;
  params: Json; // as received
  signal: AbortSignal; // aborted when lashd has cancelled the call
  deadline: number; // as Date.now()
  #plugin: Plugin<S>;
  constructor(plugin: Plugin<S>, session: Session<S>, params: Json, signal: AbortSignal) {
    [this.#plugin, this.session, this.params, this.signal] = [plugin, session, params, signal];
    this.deadline = Date.now() + (params.deadlineMs ?? 0);
  }
  get turnId(): string { return this.params.turnId ?? ""; }
  get callId(): string { return this.params.callId ?? ""; }
  /** The name of the tool, or of the operation. */
  get name(): string { return this.params.name ?? ""; }
  /** The conversation, if the hook declares that it needs it. */
  get messages(): Message[] { return this.params.messages ?? []; }
  /** Sends a request to lashd, such as toolCatalog; docs/plugin-protocol.md lists them. Rejects with a HostError. */
  host(method: string, params: Json = {}): Promise<Json> {
    return this.#plugin.ask(`host/${method}`, { ...params, grant: this.params.grant ?? "" });
  }
  /** Reports progress of a tool call. */
  progress(text: string): void { this.#plugin.notify("tool/progress", { grant: this.params.grant ?? "", text }); }
}
/** A code cell that runs. If it runs again after a crash, lashd answers as it did the first time. */
export class Cell<S> extends Call<S> {
  get cellId(): string { return this.params.cellId ?? ""; }
  get language(): string { return this.params.language ?? ""; }
  get source(): string { return this.params.source ?? ""; }
  get acceptFinish(): boolean { return !!this.params.acceptFinish; }
  get schema(): Json { return this.params.schema; }
  get tools(): Json[] { return this.session.tools; } // manifests
  /** Calls tools together. The outputs have the same order. */
  async callTools(calls: { name: string; args?: Json }[]): Promise<Output[]> { return (await this.host("callTool", { calls })).data; }
  /** Returns the time in milliseconds since 1970. */
  async now(): Promise<number> { return Math.floor((await this.host("now")).unixNs / 1e6); }
  /** Returns 32 random bytes. */
  async random(): Promise<Uint8Array> { return Buffer.from((await this.host("random")).bytes, "base64"); }
  /** Returns the conversation that the model sees. */
  async history(): Promise<Message[]> { return (await this.host("history")).data ?? []; }
}
export interface CellReply { printed?: string; value?: Json; error?: string; position?: { line: number; column?: number };
  control?: Json; changed?: string[]; unsaved?: { name: string; reason: string }[] }
/** How the globals differ from the last snapshot. globals has all of them. */
export interface CodeChange { changed?: Record<string, Uint8Array>; removed?: string[]; globals?: { name: string; type: string; size?: number }[] }
/** Runs code cells and keeps their globals as values by name. */
export interface Executor<S> {
  describe(call: Call<S>, tools: Json[]): Awaitable<{ language: string; guide: string }>;
  execute(cell: Cell<S>): Awaitable<CellReply>;
  snapshot(session: Session<S>): Awaitable<CodeChange>;
  restore(session: Session<S>, values: Record<string, Uint8Array>): Awaitable<void>; // replaces all globals
}
export interface Options<S> {
  state?: () => S; // returns the initial state of a session; absent: no state
  stateVersion?: string; // the version in plugin.json; absent: 1
  upgrade?: (version: string, state: Json) => S; // converts state of another version
  executor?: Executor<S>;
}
type Handler = (...args: Json[]) => Json;

/** A plugin. */
export class Plugin<S = null> {
  id = ""; // id, config and dataDir are set before the first session opens
  config: Json = null;
  dataDir = "";
  #options: Options<S>; #version: string;
  get #blank(): S { return (this.#options.state?.() ?? null) as S; }
  #handlers = new Map<string, Handler>(); // by kind and name
  #sessions = new Map<string, Session<S>>(); // by instance
  #calls = new Map<Json, AbortController>();
  #answers = new Map<string, (message: Json) => void>();
  #asked = 0;
  #write = process.stdout.write.bind(process.stdout);
  constructor(options: Options<S> = {}) {
    this.#options = options;
    this.#version = options.state ? (options.stateVersion ?? "1") : "";
  }
  /** Handles a hook. */
  hook<N extends keyof Hooks>(name: N, f: (call: Call<S>, context: Hooks[N][0]) => Awaitable<Hooks[N][1]>): void { this.#handle("hook", name, f); }
  /** Runs a tool. A string becomes its text, any other value its value. "*" runs all other tools, also undeclared ones. */
  tool(name: string, f: (call: Call<S>, args: Json) => Awaitable<Maybe<string | Output | Result | Json>>): void { this.#handle("tool", name, f); }
  /** Completes the arguments of a tool. */
  prepare(name: string, f: (call: Call<S>, args: Json) => Awaitable<Json>): void { this.#handle("prepare", name, f); }
  /** Lists all tools of a session, if the list changes. */
  toolList(f: (session: Session<S>) => Awaitable<Tool[]>): void { this.#handle("list", "", f); }
  /** Handles an operation. f returns its output, or the Outcome of a command or a task. */
  operation(name: string, f: (call: Call<S>, args: Json) => Awaitable<Json>): void { this.#handle("operation", name, f); }
  /** Runs tasks that plugin.json names. f returns the outcome. When call.signal aborts, the task must end. */
  task(name: string, f: (call: Call<S>, task: Json) => Awaitable<Json>): void { this.#handle("task", name, f); }
  /** Handles events of sessions and tasks, and the shutdown. */
  on(event: "open" | "restore" | "close" | "task/signal" | "task/cancel" | "shutdown", f: (session: Session<S>, said?: Json) => void): void { this.#handle("on", event, f); }
  /** Writes to the plugin's log. */
  log(level: "DEBUG" | "INFO" | "WARN" | "ERROR", message: string, data?: Json): void { this.notify("log", { level, message, data }); }
  /** Serves until lashd stops the plugin. */
  run(): void {
    process.stdout.write = process.stderr.write.bind(process.stderr) as typeof process.stdout.write; // reserve the pipe for the protocol
    let rest = "";
    process.stdin.setEncoding("utf8");
    process.stdin.on("data", (chunk: string) => {
      const lines = chunk.split("\n");
      lines[0] = rest + lines[0];
      rest = lines.pop() ?? "";
      for (const line of lines) this.#receive(JSON.parse(line));
    });
    process.stdin.on("end", () => this.#end());
  }
  /** Sends a notification to lashd. */
  notify(method: string, params: Json): void { this.#send({ method, params }); }
  /** Sends a request to lashd. */
  ask(method: string, params: Json): Promise<Json> {
    return new Promise((resolve, reject) => {
      const id = `p${++this.#asked}`;
      this.#answers.set(id, (m) => (m.error ? reject(new HostError(m.error)) : resolve(m.result)));
      this.#send({ id, method, params });
    });
  }
  #end(): void {
    for (const call of this.#calls.values()) call.abort();
    this.#handlers.get("on shutdown")?.();
    process.exit(0);
  }
  #handle(kind: string, name: string, f: Handler): void {
    if (this.#handlers.has(`${kind} ${name}`)) throw new Error(`two handlers for ${kind} ${name}`);
    this.#handlers.set(`${kind} ${name}`, f);
  }
  #find(kind: string, name: string): Handler {
    const handler = this.#handlers.get(`${kind} ${name}`) ?? this.#handlers.get(`${kind} *`);
    if (!handler) throw new UnknownError(`there is no ${kind} ${name}`);
    return handler;
  }
  #send(message: Json): void {
    const line = JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n";
    const size = Buffer.byteLength(line);
    if (size > maxMessage) throw new PluginError(`the message has ${size} bytes, more than ${maxMessage}`);
    this.#write(line);
  }
  #receive(m: Json): void {
    if (m.method === undefined) {
      this.#answers.get(m.id)?.(m);
      this.#answers.delete(m.id);
    } else if (m.id !== undefined) void this.#answer(m);
    else if (m.method === "$/cancelRequest") this.#calls.get(m.params.id)?.abort();
    else if (m.method === "shutdown") this.#end();
    else if (m.method.startsWith("task/")) this.#handlers.get(`on ${m.method}`)?.(this.#sessions.get(m.params.instance), m.params);
    else if (m.method === "session/close") {
      const session = this.#sessions.get(m.params.instance);
      this.#sessions.delete(m.params.instance);
      if (session) this.#handlers.get("on close")?.(session);
    }
  }
  async #answer(m: Json): Promise<void> {
    const cancel = new AbortController();
    this.#calls.set(m.id, cancel);
    try {
      this.#send({ id: m.id, result: (await this.#perform(m.method, m.params ?? {}, cancel.signal)) ?? {} });
    } catch (e) {
      const known = e instanceof PluginError;
      if (!known) console.error(e);
      this.#send({ id: m.id, error: { code: known ? e.code : -32000, message: known ? e.message : String(e) } });
    } finally {
      this.#calls.delete(m.id);
    }
  }
  async #perform(method: string, params: Json, signal: AbortSignal): Promise<Json> {
    if (method === "initialize") return this.#initialize(params);
    if (method === "session/open") this.#sessions.set(params.instance, new Session(this, this.#blank, params));
    const answer = method.startsWith("hook/") ? this.#hook : this.#methods[method];
    if (!answer) throw new UnknownError(`there is no method ${method}`);
    const session = this.#sessions.get(params.instance);
    if (!session) throw new PluginError(`${method}: there is no instance ${JSON.stringify(params.instance)}`);
    return answer.call(this, new Call(this, session, params, signal));
  }
  #initialize(p: Json): Json {
    if (p.protocolVersion !== protocolVersion) throw new PluginError(`lashd uses protocol version ${p.protocolVersion}, this SDK ${protocolVersion}`);
    const wrong = this.#differs(p.contributes ?? {});
    if (wrong.length > 0) throw new PluginError(`plugin.json and the program differ: ${wrong.join("; ")}`);
    [this.id, this.config, this.dataDir] = [p.pluginId, p.config, p.dataDir ?? ""];
    return { protocolVersion, pluginId: p.pluginId, nonce: p.nonce, contributes: p.contributes };
  }
  #differs(declared: Json): string[] {
    const wrong: string[] = [];
    for (const kind of ["hook", "tool", "operation", "task"]) {
      const names: string[] = declared[`${kind}s`] ?? [];
      const mine = [...this.#handlers.keys()].filter((key) => key.startsWith(`${kind} `)).map((key) => key.slice(kind.length + 1));
      const any = kind === "tool" && mine.includes("*");
      for (const name of names) if (!mine.includes(name) && !any) wrong.push(`the ${kind} ${name} has no handler`);
      for (const name of mine) if (!names.includes(name) && name !== "*") wrong.push(`the ${kind} ${name} is not declared`);
    }
    if (!!declared.executor !== !!this.#options.executor) wrong.push("only one of them declares a code executor");
    const state = declared.state ?? "";
    if (state !== this.#version) wrong.push(`the declared state version is "${state}", the program has "${this.#version}"`);
    return wrong;
  }
  async #hook(call: Call<S>): Promise<Json> {
    const { hook, context = {} } = call.params;
    return (answers[hook] ?? (() => ({})))(await this.#find("hook", hook)(call, context), context);
  }
  #methods: Record<string, (call: Call<S>) => Json> = {
    "session/open": (call) => void this.#handlers.get("on open")?.(call.session),
    "tool/execute": async (call) => {
      const given = await this.#find("tool", call.name)(call, call.params.args);
      if (given instanceof Result) return given.control === undefined ? { output: given.output } : { ...given };
      if (typeof given === "string") return { output: succeed(given) };
      return { output: ["success", "failure", "cancelled"].includes(given?.status) ? given : succeed("", given ?? undefined) };
    },
    "tool/prepare": async (call) => ({ args: await (this.#handlers.get(`prepare ${call.name}`)?.(call, call.params.args) ?? call.params.args) }),
    "tool/list": async (call) => ({
      data: (await this.#find("list", "")(call.session)).map((t: Tool) => ({ ...t, contract: { replay: "never", ...t.contract } })) }),
    "operation/query": this.#operate, "operation/command": this.#operate, "operation/task": this.#operate,
    "task/run": async (call) => ({ outcome: { kind: "completed", value: await this.#find("task", call.name)(call, call.params.task) } }),
    "snapshot/write": this.#writeState, "snapshot/restore": this.#restoreState,
    "code/describe": (call) => this.#options.executor?.describe(call, call.params.tools ?? []),
    "code/execute": (call) => {
      call.session.sending = undefined;
      call.session.tools = call.params.tools ?? call.session.tools;
      return this.#options.executor?.execute(new Cell(this, call.session, call.params, call.signal));
    },
    "code/snapshot": this.#snapshotCode, "code/restore": this.#restoreCode,
  };
  async #snapshotCode({ session: { unsent }, session }: Call<S>): Promise<Json> {
    const change: CodeChange = session.sending ?? (await this.#options.executor?.snapshot(session)) ?? {}, changed: Json = {};
    for (const name of change.removed ?? []) unsent.delete(name);
    for (const [name, data] of Object.entries(change.changed ?? {})) unsent.set(name, data);
    delete change.changed;
    let size = 0;
    for (const [name, data] of unsent) { // a large change needs several answers
      if ((size += data.length) > maxPart && size > data.length) break;
      changed[name] = base64(data);
      unsent.delete(name);
    }
    session.sending = unsent.size > 0 ? change : undefined;
    return { ...change, changed, more: unsent.size > 0 };
  }
  async #restoreCode({ session, params }: Call<S>): Promise<void> {
    for (const [name, data] of Object.entries<string>(params.values ?? {})) session.arriving.set(name, Buffer.from(data, "base64"));
    if (params.more) return;
    const values = Object.fromEntries(session.arriving);
    session.arriving.clear();
    session.unsent.clear();
    session.sending = undefined;
    await this.#options.executor?.restore(session, values);
  }
  async #operate(call: Call<S>): Promise<Json> {
    const given = await this.#find("operation", call.name)(call, call.params.args);
    return given instanceof Outcome ? given : { output: given };
  }
  async #writeState(call: Call<S>): Promise<Json> {
    const { revision, artifacts } = call.session;
    const answer: Json = { revision, state: JSON.parse(JSON.stringify(call.session.state ?? null)) ?? undefined };
    const all = [...artifacts];
    if (all.reduce((sum, [, data]) => sum + data.length, 0) <= maxInline) {
      return { ...answer, artifacts: all.map(([name, data]) => ({ name, data: base64(data) })) };
    }
    for (const [name, data] of all) {
      for (let offset = 0; offset === 0 || offset < data.length; offset += maxInline) {
        await call.host("artifactWrite", { name, offset, data: base64(data.subarray(offset, offset + maxInline)) });
      }
    }
    return answer;
  }
  async #restoreState(call: Call<S>): Promise<Json> {
    const { session, params } = call;
    let state = params.meta.state ?? null;
    if (params.meta.plugin_version !== this.#version) {
      if (!this.#options.upgrade) throw new PluginError(`cannot read state of version "${params.meta.plugin_version}"`);
      state = this.#options.upgrade(params.meta.plugin_version, state);
    }
    const artifacts = new Map<string, Uint8Array>();
    for (const a of params.artifacts ?? []) artifacts.set(a.name, await fetchArtifact(call, a));
    Object.assign(session, { state: state ?? this.#blank, artifacts, revision: Number(params.meta.revision ?? 0) });
    this.#handlers.get("on restore")?.(session);
    return {};
  }
}
async function fetchArtifact<S>(call: Call<S>, a: Json): Promise<Uint8Array> {
  let data = Buffer.from(a.data ?? "", "base64");
  while (data.length < a.size) {
    const more = await call.host("artifactRead", { name: a.name, offset: data.length });
    data = Buffer.concat([data, Buffer.from(more.data, "base64")]);
  }
  return data;
}

const base64 = (data: Uint8Array): string => Buffer.from(data).toString("base64");
const list = (given: Json): Json[] => (given === null || given === undefined ? [] : Array.isArray(given) ? given : [given]);
const directives = (given: Json): Json => ({ directives: list(given) });
const answers: Record<string, (given: Json, context: Json) => Json> = {
  beforeTurn: directives, beforeToolCall: directives, afterToolCall: directives, checkpoint: directives, afterTurn: directives,
  prompt: (g) => ({ prompts: list(g).map((p) => (typeof p === "string" ? { slot: "guidance", content: p } : p)) }),
  assistantStream: (g, c) => (typeof g === "string" ? { text: g } : (g ?? c)),
  assistantResponse: (g, c) => g ?? c,
  projectToolResult: (g, c) => ({ output: g ?? c.output }),
  configChanged: (g, c) => ({ config: g ?? c.config }),
  transformContext: (g, c) => ({ ...(g ?? c), view: undefined }),
  compact: (g) => ({ nodes: list(g) }), catalog: (g) => ({ remove: list(g) }), projectProse: (g, c) => ({ text: g ?? c.text }),
};
