// Generated from the method table of lashd; do not edit.

/** AppendStatus is the outcome of an append. */
export type AppendStatus = "appended" | "staleBranch";

/** ApprovalConfig decides which tool calls need an approval. */
export interface ApprovalConfig {
  /** for calls that no rule matches; absent: ask for tools that change something, allow others */
  mode?: ApprovalMode;
  rules?: ApprovalRule[];
  /** how long an approval stays open; 0: ten minutes */
  deadlineMs?: number;
  /** the answer after the deadline: allow or deny; absent: deny */
  default?: ApprovalMode;
  /** what commands of the session reach; absent in a request: as before, or the default of the daemon */
  sandbox?: SandboxMode;
}

/** ApprovalDetail shows what a call will do, and which answers beyond yes and no the decision accepts. A client that ignores it can still allow exactly the call in the prompt, or reject it. */
export interface ApprovalDetail {
  /** of the call; absent for tools that lashd does not know */
  title?: CallTitle;
  /** the call runs a command */
  command?: CommandDetail;
  /** the call changes these files */
  files?: FilePreview[];
  /** the command wants to reach these hosts */
  hosts?: string[];
  /** why lashd asks */
  why: ApprovalReason;
  /** what allowSession and allowAlways can cover besides exactly this call, narrowest first; the first is the proposal */
  widths?: ApprovalWidth[];
  /** allowOnce may carry changed arguments */
  editable?: boolean;
}

/** ApprovalMode says what lashd does with a tool call: run it, ask for approval, or reject it. */
export type ApprovalMode = "allow" | "ask" | "deny";

/** ApprovalReason is why a call is allowed, asked about or denied. */
export interface ApprovalReason {
  by: DecidedBy;
  /** the rule that decides */
  rule?: ApprovalRule;
  /** of the rule, or of the answer */
  level?: RuleLevel;
  /** one sentence for people */
  text: string;
}

/** ApprovalRule decides about the tool calls it matches. If several rules match, the strictest counts: deny, then ask, then allow. An ask or deny rule also matches tools that declare themselves to be like the named tool. At most one of command, path and host limits the rule to some calls of its tools. It is compared with the subjects of a call: its command, its paths (for a patch, every path in it) and the hosts that its command wants to reach. An ask or deny rule matches if one subject matches. An allow rule for commands or paths matches only if it covers all commands and paths of the call. Hosts need an allow rule of their own, unless a rule allows the tool without a limit. Commands are parsed like a shell does. The words of the rule are compared with each simple command, including commands run by env, sudo, sh -c and similar programs. An allow rule must match all of them, and the command line must hold only literal words. If lashd cannot know what a command runs, a deny rule asks instead. A first word with a slash names a program or a directory of programs. A command with an option that makes its program run another one, such as go test -exec, is allowed only if the rule names the option. A path matches if it equals the rule's path or lies below it. Both may be absolute or relative to the workspace. lashd compares the path as written and the path after following symbolic links. For ask and deny, one match is enough and case is ignored; allow needs both. */
export interface ApprovalRule {
  /** a tool name, or a pattern with *; absent: all tools that have such a command, path or host */
  tool?: string;
  /** the first words of a command */
  command?: string;
  /** a file, a directory with everything below it, or a pattern for them: * matches within a name, ** across directories */
  path?: string;
  /** a host, or *.domain for every host below it; with :port only that port */
  host?: string;
  action: ApprovalMode;
}

/** ApprovalWidth is a set of calls that an answer can cover. */
export interface ApprovalWidth {
  /** for a person, such as: commands that begin with go test */
  text: string;
  /** the rule that is stored; absent: exactly this call */
  rule?: ApprovalRule;
}

/** ArtifactReadParams selects a range of an artifact. */
export interface ArtifactReadParams {
  digest: Digest;
  offset?: number;
  /** 1 to 1048576 bytes; absent: 1048576 */
  limit?: number;
}

/** ArtifactReadResult is a range of an artifact. It is the last one if offset plus the length of bytes equals size. */
export interface ArtifactReadResult {
  digest: Digest;
  /** of the whole artifact */
  size: number;
  offset: number;
  bytes: string;
}

/** ArtifactRef refers to a stored artifact. */
export interface ArtifactRef {
  digest: Digest;
  size: number;
  type?: string;
}

/** ArtifactWriteParams is one part of an upload. Send the parts in order, starting at offset 0. With done, lashd stores the artifact before it responds. Until then it keeps the parts in memory only. It drops an unfinished upload after ten minutes without a new part, and when the daemon stops. */
export interface ArtifactWriteParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  /** chosen by the client */
  uploadId: string;
  offset?: number;
  /** at most 1 MiB */
  bytes: string;
  done?: boolean;
  /** with done: expected digest of the whole artifact; checked if set */
  digest?: Digest;
}

/** ArtifactWriteResult reports the progress of an upload. */
export interface ArtifactWriteResult {
  received: number;
  /** set when the artifact is stored */
  digest?: Digest;
  /** the received parts survive a crash; absent: after a crash, start again at offset 0 */
  durable?: boolean;
  duplicate?: boolean;
}

/** AssistantOutput is the text of a turn. */
export interface AssistantOutput {
  /** without protocol syntax */
  safe: string;
  /** as the model wrote it; set only if it differs from safe */
  raw?: string;
  state: OutputState;
}

/** Attachment is a file in an input or in a tool result: an image (PNG, JPEG, GIF or WebP, at most 5 MiB and 8000 pixels wide and high), a PDF document (at most 32 MiB) or UTF-8 text (at most 4 MiB). It has data, a digest or a URL. lashd stores data over 4 KiB by its digest; clients read it with artifact/read. */
export interface Attachment {
  name?: string;
  /** media type; lashd corrects it to what the contents show */
  type: string;
  /** the contents, base64 on the wire */
  data?: string;
  /** digest of an artifact of the session */
  digest?: Digest;
  /** address of external contents; lashd passes it to the model and never fetches it */
  url?: string;
  /** set by lashd from dimensions, pages or size; absent: unknown */
  estimatedTokens?: number;
}

/** AttemptOutcome says how an attempt ended. */
export type AttemptOutcome = "completed" | "failed" | "aborted" | "interrupted";

/** AuditEntry is an audit record with its place in the log of its session. */
export interface AuditEntry {
  sessionId: SessionID;
  seq: Seq;
  atMs: number;
  /** absent: a client made the call */
  turnId?: TurnID;
  kind: AuditKind;
  callId?: CallID;
  taskId?: TaskID;
  tool: string;
  subject?: string;
  dir?: string;
  sandbox?: SandboxMode;
  granted?: string[];
  hosts?: RefusedHost[];
  why: ApprovalReason;
  choice?: DecisionChoice;
  by?: string;
}

/** AuditKind is the kind of an AuditRecord. */
export type AuditKind = "outside" | "allowed" | "refused";

/** AuditListParams selects a page of the audit records of a session. */
export interface AuditListParams {
  sessionId: SessionID;
  /** absent: all */
  kind?: AuditKind;
  /** ms since 1970; absent: from the start */
  sinceMs?: number;
  cursor?: string;
  /** 1 to 500; absent: 200 */
  limit?: number;
}

/** AuditListResult is a page of audit records in order. A page may be empty before the last one. */
export interface AuditListResult {
  data: AuditEntry[];
  nextCursor?: string;
}

/** AuditRecord says who decided over a tool call, and where its programs ran. Calls that need no decision, such as commands in a sandbox and tools that only read, have none unless the sandbox refuses something to them. */
export interface AuditRecord {
  kind: AuditKind;
  /** absent for a background command or monitor that has ended */
  callId?: CallID;
  /** the task of a background command or monitor to which the sandbox refused something, or of a plugin's monitor that ran outside */
  taskId?: TaskID;
  tool: string;
  /** the command, the paths or the hosts; at most 2,000 bytes */
  subject?: string;
  /** of the command */
  dir?: string;
  /** the mode in which its programs ran */
  sandbox?: SandboxMode;
  /** hosts that the call named, for a call that was allowed */
  granted?: string[];
  /** each host that the proxy of the command refused */
  hosts?: RefusedHost[];
  /** what decided; with a choice, why lashd asked */
  why: ApprovalReason;
  /** the answer, if lashd asked */
  choice?: DecisionChoice;
  /** who answered: a client id, deadline, or internal:<subject> */
  by?: string;
}

/** AuditVerifyResult says whether the log of a session is complete and unchanged. */
export interface AuditVerifyResult {
  /** checked events */
  events: number;
  /** absent: the log is sound */
  problem?: string;
}

/** Authority limits what a session may use. It is set when the session is created, stored with it, and never grows, neither for the session nor for its forks. */
export interface Authority {
  /** if set: the session has exactly these tools, in this order */
  tools?: string[];
  /** the session has no tools; tools must be empty */
  noTools?: boolean;
  /** tools with these names never appear in the catalog */
  hiddenTools?: string[];
  /** set for the session of a subagent */
  subagent?: Subagent;
  /** set if a plugin or another session requested the session: the requester's limits */
  ceiling?: Ceiling;
}

/** Boundary is the kind of checkpoint at which a steered input may enter a running turn. */
export type Boundary = "afterWork" | "beforeCompletion";

/** Budget limits a turn. */
export interface Budget {
  /** maximum number of model calls; -1: no limit */
  iterations: number;
  /** maximum number of attempts in a row without a successful tool call or code cell; 0: 12 */
  noProgress?: number;
}

/** CacheRetention says how long a server may keep the beginning of a prompt, for APIs in which the caller decides. Servers that cache by themselves ignore it. */
export type CacheRetention = "none" | "short" | "long";

/** CallAttempt is one attempt of a model call. */
export interface CallAttempt {
  outcome: AttemptOutcome;
  error?: Issue;
  /** HTTP status, if there was a response */
  status?: number;
  /** connecting, waiting or streaming */
  position?: string;
  /** why lashd did or did not retry */
  retry?: string;
  /** wait before the next attempt */
  waitMs?: number;
}

/** CallDecision is how lashd decided whether a tool call may run. A call that failed before, or that a plugin answered itself, has none. */
export interface CallDecision {
  /** allow or deny */
  mode: ApprovalMode;
  /** what decided; with a choice, why lashd asked */
  why: ApprovalReason;
  /** the answer, if lashd asked */
  choice?: DecisionChoice;
  /** who answered: a client id, deadline, or internal:<subject> */
  by?: string;
  /** the only changes that the answer allowed; absent: all of the call */
  hunks?: number[];
  /** why the answer denied the call, or the changes that hunks leave out, in the words of who answered */
  reason?: string;
}

/** CallEvidence is what the model's server says about how it ran a call. lashd stores these fields and no others, never fills them in itself, and cuts each to 256 bytes. */
export interface CallEvidence {
  /** the model that answered, which can differ from the one that was asked */
  model?: string;
  /** such as default, priority or flex */
  serviceTier?: string;
  /** the server's id of the reply, for questions to its operator */
  responseId?: string;
}

/** the model's id, or derived from turn, iteration and position */
export type CallID = string;

/** CallRecord describes one model call, successful or not. */
export interface CallRecord {
  iteration: number;
  provider: string;
  model: string;
  stop?: StopReason;
  /** absent if lost or never reported */
  usage?: Usage;
  attempts: CallAttempt[];
  options?: OptionReceipt[];
  /** absent: the server reported nothing of it */
  evidence?: CallEvidence;
  durationMs: number;
}

/** CallTitle names a call for people, as one line: a form of the verb, the subject, the detail. For returns the form that fits. */
export interface CallTitle {
  kind: ToolKind;
  /** of a call that waits for an answer, failed or was cancelled, such as: Run */
  verb: string;
  /** of a call that runs, such as: Running */
  running: string;
  /** of a call that is done, such as: Ran */
  done: string;
  /** the file, command, pattern or foreign tool, at most 200 characters without control characters */
  subject?: string;
  /** words that follow the subject, such as: in src */
  detail?: string;
  /** the tool is not lashd's own: its provider has chosen what it is called */
  foreign?: boolean;
}

/** CancelEvidence says who cancelled a turn. Requests of lashd itself have ids of the form internal:<subject>. */
export interface CancelEvidence {
  requestId: string;
  origin?: string;
  reason?: string;
}

/** CancelStatus says whether an input was removed from the queue. */
export type CancelStatus = "cancelled" | "alreadyClaimed" | "alreadyCompleted" | "alreadyCancelled" | "notFound";

/** CancelledInput is the status of one input after queue/cancel. */
export interface CancelledInput {
  inputId: InputID;
  status: CancelStatus;
}

/** Ceiling holds the limits of a plugin or session that requested a session, an input or a task. The limits apply in addition to the session's own configuration, and no configuration removes them. */
export interface Ceiling {
  /** approval policies of the requesters; each decides every tool call, and the strictest decision counts */
  policies?: Policy[];
  /** directories; the session's workspace must lie in all of them */
  roots?: string[];
  /** a requester is in plan mode: only tools of the kinds read, search and think may be called; no commands or code run */
  readOnly?: boolean;
  /** a requester is in a sandbox: every call that could start a program outside it needs an approval */
  sandboxed?: boolean;
  /** if set: no other tool may be called */
  tools?: string[];
  /** no tool may be called */
  noTools?: boolean;
  /** tools that may not be called */
  hiddenTools?: string[];
}

/** CellCall is a tool call that a code cell made, for people. Long texts in it are cut. It has what the caller asked for and saw: the arguments before hooks changed them, and no more of the output than the code got. */
export interface CellCall {
  callId: CallID;
  /** position among the calls of the cell, from 1 */
  index: number;
  tool: string;
  /** absent if large */
  args?: unknown;
  status: ItemStatus;
  /** absent until it is decided */
  decision?: CallDecision;
  durationMs: number;
  /** of the result: one line of its text, its change of a file, or its error */
  summary?: string;
}

/** ClientCapabilities lists what a client supports. */
export interface ClientCapabilities {
  /** do not send item/delta events */
  noDeltas?: boolean;
}

/** chosen by a client, or cli_... */
export type ClientID = string;

/** ClientInfo names a client. */
export interface ClientInfo {
  name: string;
  title?: string;
  version?: string;
}

/** ClientTool is a tool that the client runs. lashd requests calls with tool/requested events. */
export interface ClientTool {
  id?: string;
  name: string;
  title?: string;
  description: string;
  input?: unknown;
  kind?: ToolKind;
  activation?: ToolActivation;
  like?: string;
  bindings?: Record<string, unknown>;
  /** absent: never */
  replay?: Replay;
  /** time limit of a call; absent: two minutes */
  deadlineMs?: number;
}

/** CodeExecuteParams runs a code cell without a model. Without write, the cell calls no tools and its assignments are forgotten. With write, its tool calls are judged like those of tool/call, and its variables are stored. */
export interface CodeExecuteParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  source: string;
  write?: boolean;
}

/** CodeExecuteResult is the result of a code cell. An error of the code is part of it. */
export interface CodeExecuteResult {
  cellId: CallID;
  language: string;
  result: CodeResult;
  /** the first 128 calls that the cell made, in order; result.moreCalls counts the others */
  calls: ToolCallRecord[];
  durationMs: number;
  duplicate?: boolean;
}

/** CodeGlobal describes a global variable that code cells of a session have set. */
export interface CodeGlobal {
  name: string;
  /** as the language names it */
  type: string;
  /** of the stored value, in bytes; absent: unknown */
  size?: number;
}

/** CodePosition is a place in the source of a code cell. */
export interface CodePosition {
  /** from 1 */
  line: number;
  /** from 1; absent: unknown */
  column?: number;
}

/** CodeResult is the result of a code cell, for people. The model reads the text of the part that has it. */
export interface CodeResult {
  /** parent of the calls that the cell made */
  cellId?: CallID;
  /** at most 64 KiB of it */
  printed?: string;
  /** of the last expression, or the final value of the turn; absent if over 64 KiB */
  value?: unknown;
  /** absent: the code ran without an error */
  error?: string;
  position?: CodePosition;
  /** the cell ended the turn */
  final?: boolean;
  /** globals that the cell set or removed */
  changed?: string[];
  unsaved?: UnsavedGlobal[];
  /** of the run that gave this result, with its calls and the waits for people */
  durationMs?: number;
  /** the first calls that the code made, in order, at most 128 */
  calls?: CellCall[];
  /** number of calls after these */
  moreCalls?: number;
}

/** CodeStateResult describes how a session runs code cells, and the variables that they have set. */
export interface CodeStateResult {
  driver: string;
  /** plugin that runs the code */
  executor: string;
  language: string;
  /** ordered by name */
  globals: CodeGlobal[];
  /** a cell is running: globals are the stored ones from before it, without their types */
  stale?: boolean;
}

/** CommandArgument is an argument of a prompt. */
export interface CommandArgument {
  name: string;
  description?: string;
  required?: boolean;
}

/** CommandCall is a slash command that a person sends with an input. lashd adds its text after the input. */
export interface CommandCall {
  name: string;
  /** the rest of the line */
  arguments?: string;
}

/** CommandDetail is a command that a call runs. */
export interface CommandDetail {
  /** as the model wrote it */
  command: string;
  /** absolute directory that the command starts in, without symbolic links if it exists */
  dir: string;
  /** the command runs outside the sandbox */
  outside?: boolean;
}

/** CommandInfo is a slash command of a session. Clients offer it to people. */
export interface CommandInfo {
  /** without the slash; commands of plugins are plugin:name */
  name: string;
  kind: CommandKind;
  description?: string;
  /** what people type after the name */
  argumentHint?: string;
  /** plugin that has it; empty: a server that a client added */
  plugin: string;
  /** of a prompt: the MCP server */
  server?: string;
  /** of a prompt: its name at the server, for mcp/complete */
  prompt?: string;
  /** of a prompt, in order; people write them as words or as NAME=VALUE */
  arguments?: CommandArgument[];
}

/** CommandKind says what a slash command is. */
export type CommandKind = "command" | "skill" | "prompt";

/** CommandListResult lists the slash commands of a session, sorted by name. */
export interface CommandListResult {
  data: CommandInfo[];
}

/** CompactionPart is a part of the history. */
export interface CompactionPart {
  messages: number;
  tokens: number;
  /** the first lines of its inputs, at most 20, newest last */
  inputs: string[];
  /** number of inputs before these */
  moreInputs?: number;
}

/** CompactionPreviewResult says what session/compact would do with the history that the model sees. All numbers of tokens are estimates. The plugin history answers; a plugin with a compactor of its own may do something else. */
export interface CompactionPreviewResult {
  /** false: there is nothing to summarize */
  compacts: boolean;
  /** what a summary replaces */
  summarized: CompactionPart;
  /** what stays word for word */
  kept: CompactionPart;
  /** of the history now */
  tokens: number;
  /** of what is kept, without the summary */
  tokensAfter: number;
  /** the newest tokens that stay, at most; a shorter history is not compacted */
  keeps: number;
}

/** authorizes tool/complete for a pending call; only the tool that took it knows it */
export type CompletionKey = string;

/** CompletionParams makes one model call outside any turn. It has either text or messages. */
export interface CompletionParams {
  idempotencyKey?: string;
  /** session that records its usage */
  sessionId?: SessionID;
  model?: string;
  /** one of the model's reasoning efforts; absent: the model's own setting */
  effort?: string;
  system?: string;
  /** a single message of the user */
  text?: string;
  /** a whole conversation */
  messages?: Message[];
  generation?: GenerationOptions;
  /** JSON Schema of the value that the model replies with; at most 64 KiB */
  schema?: unknown;
  /** source in the usage ledger; absent: completion */
  label?: string;
}

/** CompletionResult is the model's reply. */
export interface CompletionResult {
  message: Message;
  text: string;
  /** the value, if the request has a schema and the reply matches it */
  value?: unknown;
  /** why the reply has no value, if the request has a schema */
  problem?: string;
  stop: StopReason;
  call: CallRecord;
  duplicate?: boolean;
}

/** Config holds the settings of a session. The head and every frame have one. */
export interface Config {
  driver: string;
  model: ModelSpec;
  budget: Budget;
  /** the session's own part of the system prompt */
  prompt?: string;
  generation?: GenerationOptions;
  approval?: ApprovalConfig;
  /** by plugin id */
  options?: PluginOptions;
  unknownOutcome?: UnknownOutcomeRule;
  /** absent: merge */
  drain?: DrainPolicy;
}

/** CronSource is a schedule. */
export interface CronSource {
  /** the five fields of cron: minute, hour, day, month and weekday; or @hourly, @daily, @weekly, @monthly, @yearly, @every 90m */
  schedule: string;
  /** such as Europe/Zurich; absent: the machine's time zone */
  timeZone?: string;
  /** what to do about times at which lashd was not running or the machine was asleep */
  missed: MissedTicks;
}

/** DebugPromptParams selects a session and an optional input for the prompt preview. */
export interface DebugPromptParams {
  sessionId: SessionID;
  input?: InputPart[];
}

/** DebugPromptResult is the exact request of the session's next model call, before the adapter encodes it. Issues list what is missing. */
export interface DebugPromptResult {
  model: ModelSpec;
  system: string;
  tools: ToolManifest[];
  messages: Message[];
  options: GenerationOptions;
  /** the encoded request; absent if the adapter cannot preview it */
  body?: unknown;
  /** Plugins whose part is missing. They failed, with the code that the turn would fail with. During a turn or a command, lashd does not call them; the code is not_asked. */
  issues?: Issue[];
}

/** DecidedBy names what decided over a call. */
export type DecidedBy = "rule" | "mode" | "sandbox" | "outside" | "protected" | "plugin" | "ceiling" | "answer" | "preview" | "client" | "trust";

/** DecidingCommand is a simple command for which the decision alone is the same as for its line, and the reason of that. */
export interface DecidingCommand {
  command: string;
  reason: ApprovalReason;
}

/** Decision is a stored question that a session waits on. It survives disconnects and restarts. The first answer counts. */
export interface Decision {
  decisionId: DecisionID;
  sessionId: SessionID;
  turnId?: TurnID;
  kind: DecisionKind;
  call?: ToolCall;
  /** of an approval: hash of the arguments that it covers; of a question: identifies the question within its call */
  argsHash?: Digest;
  /** the text of the question */
  prompt: string;
  /** of an approval: arguments that allowSession and allowAlways ignore */
  varying?: string[];
  /** of an approval: the resolved paths of the call, which the approval covers; empty if unknown */
  places?: string[];
  /** of a question: JSON Schema of the answer's value; absent: any value */
  form?: unknown;
  /** of a question that asks a person to open a page: its address */
  url?: string;
  choices: DecisionChoice[];
  /** the answer after the deadline */
  default: DecisionChoice;
  openedAtMs: number;
  /** ms since 1970; 0: no deadline */
  deadlineAtMs: number;
  /** of a completion */
  deferral?: Deferral;
  /** of an approval: what the call will do, and what an answer may add to its choice */
  detail?: ApprovalDetail;
  answer?: DecisionAnswer;
  /** RemainingMs is the time left until the deadline, in decision/list and session/attach. A client counts down from it, whatever its own clock says. In decision/opened it is absent: there the time left is deadlineAtMs - openedAtMs. */
  remainingMs?: number;
}

/** DecisionAnswer is the answer to a decision and its author. */
export interface DecisionAnswer {
  choice: DecisionChoice;
  value?: unknown;
  /** of allowOnce: the call runs with these arguments instead of its own */
  args?: unknown;
  /** with args: the resolved paths of the call with them, which the answer covers */
  places?: string[];
  /** of allowOnce: the hunks that were taken; args makes exactly these changes */
  hunks?: number[];
  /** of allowSession and allowAlways: index into detail.widths; absent: exactly this call */
  width?: number;
  /** of reject, and of hunks that leave out changes: text for the model */
  reason?: string;
  /** a client id, deadline, or internal:<subject> */
  by: string;
  atMs: number;
}

/** DecisionChoice is a possible answer to a decision. */
export type DecisionChoice = "allowOnce" | "allowSession" | "allowAlways" | "reject" | "happened" | "didNotRun" | "runAgain" | "tellModel" | "answer" | "open" | "cancelled" | "unavailable";

/** dec_... */
export type DecisionID = string;

/** DecisionKind says what a decision is about. */
export type DecisionKind = "approval" | "outcome" | "question" | "completion";

/** DecisionListParams selects open decisions. */
export interface DecisionListParams {
  /** this session and its subagents; absent: all sessions */
  sessionId?: SessionID;
}

/** DecisionListResult lists open decisions. */
export interface DecisionListResult {
  data: Decision[];
}

/** DecisionRespondParams answers a decision. Args, hunks, width and reason belong to approvals; detail says which of them a decision accepts. */
export interface DecisionRespondParams {
  idempotencyKey?: string;
  decisionId: DecisionID;
  /** one of the decision's choices */
  choice: DecisionChoice;
  /** for the choice answer: a value that matches the decision's form */
  value?: unknown;
  /** the decision's argsHash; required to approve a tool call, ignored otherwise */
  argsHash?: Digest;
  /** with allowOnce: run the call with these arguments instead. They are validated and judged: a denial stays one */
  args?: unknown;
  /** with allowOnce: make only these changes, as indexes over the hunks of all files in order, from 0 */
  hunks?: number[];
  /** with allowSession or allowAlways: index into detail.widths; absent: exactly this call */
  width?: number;
  /** with reject, or with hunks that leave out changes: text for the model, at most 8192 bytes */
  reason?: string;
}

/** DecisionRespondResult is the answer that counts. won reports whether it is the one you sent. */
export interface DecisionRespondResult {
  answer: DecisionAnswer;
  won: boolean;
  seq: Seq;
  duplicate?: boolean;
}

/** Deferral says how long a pending tool call waits for tool/complete, and what happens after that. */
export interface Deferral {
  /** counted from when the tool takes the completion key; absent: one day */
  deadlineMs?: number;
  onTimeout?: OnTimeout;
  onCancel?: OnCancel;
}

/** Delivery says when the model receives a wake. */
export type Delivery = "earliestBoundary" | "afterTurn";

/** DeliveryState is the state of a delivery. All but reserved are final. */
export type DeliveryState = "reserved" | "delivered" | "refused" | "failed" | "targetGone";

/** DiagnosticsResult describes the daemon's resource use, its modes, and plugins with problems. */
export interface DiagnosticsResult {
  rssBytes: number;
  heapBytes: number;
  goroutines: number;
  openFiles: number;
  /** absent: unknown */
  openFilesLimit?: number;
  children: number;
  dbBytes: number;
  walBytes: number;
  durability: string;
  /** sandbox for plugin programs that request one */
  sandbox: string;
  /** how lashd ends processes that commands leave behind: supervisors, and a cgroup if the system allows it */
  containment: string;
  storeId: string;
  epoch: number;
  /** bytes queued for slow clients */
  queuedBytes: number;
  traceRecordsLost: number;
  /** plugin directories and how lashd watches them */
  roots: PluginRoot[];
  /** plugins with problems, of the user and of all workspaces in use */
  ailingPlugins: PluginInfo[];
}

/** sha256 of bytes, in hex */
export type Digest = string;

/** DrainPolicy says whether wakes with the same merge key share a turn. */
export type DrainPolicy = "merge" | "one";

/** DriverInfo describes a way in which sessions drive their model. session/new chooses one; a session keeps its driver. */
export interface DriverInfo {
  /** for session/new */
  name: string;
  title: string;
  /** a sentence for people who choose */
  about?: string;
  /** the driver of new sessions that name none */
  default?: boolean;
}

/** EffectOutcome says whether a failed request changed anything. */
export type EffectOutcome = "none" | "durable" | "unknown";

/** Empty is the params or the result of a method without any. */
export type Empty = Record<string, never>;

/** ErrorData is the data member of every error. */
export interface ErrorData {
  /** the stable name of the error */
  kind: ErrorKind;
  /** whether to retry: now, reload or never */
  retry: RetryAdvice;
  /** what the request left behind: none, durable or unknown; set in every error from the daemon */
  outcome?: EffectOutcome;
  /** JSON pointer to the invalid parameter */
  pointer?: string;
  /** for a reasoning effort: unsupported_effort, effort_not_configurable or effort_required */
  code?: string;
  /** the closest known method or name */
  nearest?: string;
  /** wait this many milliseconds before a retry */
  retryAfterMs?: number;
  /** for generationMismatch: the current generation */
  generation?: number;
  /** for turnActive: the running turn */
  turnId?: TurnID;
  /** for fileConflict: the first 100 conflicting files */
  files?: FileRewind[];
}

/** ErrorKind is the stable name of an error, in data.kind. */
export type ErrorKind = "parseError" | "badFrame" | "frameTooLarge" | "foreignProtocol" | "invalidRequest" | "notInitialized" | "methodNotFound" | "invalidParams" | "internal" | "denied" | "overloaded" | "cancelled" | "sessionNotFound" | "turnNotFound" | "nodeNotFound" | "inputNotFound" | "decisionNotFound" | "toolNotFound" | "triggerNotFound" | "callNotFound" | "modelNotFound" | "driverNotFound" | "snapshotNotFound" | "taskNotFound" | "taskElsewhere" | "taskEnded" | "monitorNotFound" | "artifactNotFound" | "unknownOperation" | "missingSession" | "unexpectedSession" | "operationFailed" | "pluginFailed" | "pluginNotFound" | "pluginTrusted" | "mcpServerTaken" | "mcpServerNotFound" | "mcpLoginNotFound" | "mcpNoLogin" | "mcpLoginFailed" | "pluginModified" | "extensionRejected" | "sessionDeleted" | "sessionStillInUse" | "workspaceElsewhere" | "turnActive" | "turnNotActive" | "noCode" | "cellInterrupted" | "conflict" | "forkPointNotRetained" | "fileConflict" | "filesUnrestorable" | "pointNotFound" | "generationMismatch" | "unsupportedInput" | "tooLarge" | "providerError" | "setupFailed" | "providerUnreachable" | "storageFull" | "storageBusy" | "storagePoisoned" | "storageReadOnly" | "shuttingDown";

/** Event is an entry of a session's log, as subscribers receive it. Type determines which fields after it are set; the comments of EventType list them. An event with a Seq is durable. Events without one are never replayed. */
export interface Event {
  /** always set on the wire */
  sessionId?: SessionID;
  seq?: Seq;
  atMs: number;
  turnId?: TurnID;
  type: EventType;
  item?: Item;
  itemId?: ItemID;
  /** position of Text in the item's text, in bytes */
  offset?: number;
  text?: string;
  input?: InputPart[];
  inputIds?: InputID[];
  /** causes of the inputs that are wakes; their text is in Input */
  causes?: TurnCause[];
  boundary?: Boundary;
  outcome?: TurnOutcome;
  /** the turn that continues in another frame */
  followedBy?: TurnID;
  usage?: Usage;
  /** of the session, including this turn */
  total?: Usage;
  issues?: Issue[];
  call?: CallRecord;
  iteration?: number;
  decision?: Decision;
  toolCall?: ToolCall;
  cellCall?: CellCall;
  clientId?: ClientID;
  deadlineMs?: number;
  retry?: RetryStatus;
  config?: Config;
  frame?: FrameOpen;
  frameId?: FrameID;
  head?: Head;
  source?: ForkSource;
  tools?: ToolState;
  queue?: QueuedInput[];
  title?: string;
  plugin?: string;
  name?: string;
  body?: unknown;
  task?: Task;
  taskEvent?: TaskEvent;
  monitor?: Monitor;
  updates?: MonitorUpdate[];
  point?: FilePoint;
  audit?: AuditRecord;
}

/** EventType is the type of a session event. Durable reports which types have a Seq. */
export type EventType = "turn/accepted" | "turn/started" | "turn/completed" | "item/started" | "item/delta" | "item/completed" | "item/retracted" | "model/requested" | "model/recorded" | "input/accepted" | "decision/opened" | "decision/resolved" | "tool/requested" | "tool/progress" | "cell/call" | "retry/status" | "plugin/status" | "plugin/custom" | "frame/opened" | "session/configured" | "session/forked" | "session/rewound" | "session/compacted" | "tools/changed" | "queue/changed" | "task/started" | "task/changed" | "task/completed" | "monitor/update" | "snapshot/created" | "snapshot/deleted" | "file/point" | "audit/recorded" | "usage/updated";

/** ExportFormat is the format of an exported session. */
export type ExportFormat = "markdown" | "json";

/** FailureClass groups tool failures. */
export type FailureClass = "invalidRequest" | "io" | "unavailable" | "permissionDenied" | "timeout" | "execution" | "external" | "resourceLimit" | "internal";

/** FailureSource says which part of the system failed. */
export type FailureSource = "runtime" | "tool" | "plugin" | "policy" | "cancellation";

/** FileChange is an edit of a workspace file, for display. */
export interface FileChange {
  path: string;
  /** unified */
  diff: string;
  /** lines */
  added: number;
  /** lines */
  removed: number;
}

/** FileConflict says why restoring a file would lose changes. Only force restores it. */
export type FileConflict = "changedSince" | "shared" | "unsure" | "notKept";

/** FileDiff is the change of one file by a turn or a session. A directory has none: only its files do. */
export interface FileDiff {
  path: string;
  effect: FileEffect;
  kind: FileKind;
  before?: FileState;
  after?: FileState;
  /** lines */
  added?: number;
  /** lines */
  removed?: number;
  binary?: boolean;
  /** unified diff; absent if there is none or it would be too long */
  diff?: string;
  /** the diff was left out because it is too long */
  cut?: boolean;
  unkept?: FileProblem;
}

/** FileEffect says how a file changes. */
export type FileEffect = "created" | "modified" | "deleted";

/** FileKind is the kind of a file system entry. */
export type FileKind = "file" | "link" | "directory" | "unknown";

/** FilePoint records the file changes of one turn or one undo: the state of each file before and after. session/rewind restores files to their state before a file point. */
export interface FilePoint {
  pointId: PointID;
  sessionId: SessionID;
  kind: PointKind;
  state: PointState;
  turnId?: TurnID;
  /** of an undo: it restored files to before this point */
  to?: PointID;
  atMs: number;
  /** number of changed files and links */
  files: number;
  /** number of directories that were created, deleted or got another mode; their files count in files */
  directories?: number;
  /** number of all these without a copy of their earlier state */
  unkept?: number;
  /** why files cannot be restored to before this point; absent: they can */
  unrestorable?: string;
  /** a later undo reverted it */
  undone?: boolean;
}

/** FilePreview is what a call will change in one file. If the file has changed when the call runs, the call fails and changes nothing. */
export interface FilePreview {
  /** relative to the workspace if it is in it */
  path: string;
  kind: PreviewKind;
  hunks?: Hunk[];
  /** lines, including those that are not shown */
  added?: number;
  /** lines, including those that are not shown */
  removed?: number;
  /** the diff is too large and incomplete; then hunks cannot be chosen */
  cut?: boolean;
  /** the old or new content is not text; there are no hunks */
  binary?: boolean;
  /** why there is no diff: for example, the file cannot be read */
  problem?: string;
  /** hash of the content that the diff starts from; absent: no file, or it was not read */
  before?: Digest;
}

/** FileProblem says why lashd has no copy of a file and cannot restore it. */
export type FileProblem = "tooLarge" | "unreadable" | "late" | "noRoom" | "ignored" | "privileged";

/** FileRewind is what an undo does to one file. */
export interface FileRewind {
  /** relative to the workspace, with slashes */
  path: string;
  effect: FileEffect;
  kind: FileKind;
  /** lines */
  added?: number;
  /** lines */
  removed?: number;
  /** a binary file; lines are not counted */
  binary?: boolean;
  conflict?: FileConflict;
  /** lashd has no copy of the earlier file, so it stays unchanged */
  unkept?: FileProblem;
  /** why restoring the file failed */
  problem?: string;
}

/** FileSource says which files to watch. lashd does not notice changes made while it is not running. */
export interface FileSource {
  /** matches paths in the directory; * and ? match within a name, ** across directories. A pattern without a slash matches file names */
  glob: string;
  /** absolute path; absent: the workspace of the session that is woken or started */
  dir?: string;
}

/** FileState describes the file at a path at one time. A missing file has no FileState. */
export interface FileState {
  kind: FileKind;
  /** Unix permission bits, including setuid, setgid and sticky */
  mode?: number;
  size?: number;
  /** of the file's contents, if lashd has a copy */
  digest?: Digest;
  /** target of a symbolic link */
  link?: string;
  /** why lashd has no copy */
  problem?: FileProblem;
}

/** ForkCatalog says which tool settings a fork starts with. */
export type ForkCatalog = "inherit" | "fresh";

/** ForkSource is the node at which a fork branches off. */
export interface ForkSource {
  sessionId: SessionID;
  node: NodeID;
}

/** id of the node that opens the frame */
export type FrameID = string;

/** FrameOpen starts a frame: a section of history with its own settings. */
export interface FrameOpen {
  /** the same key opens the same frame, so a retry does not open a second one */
  key: string;
  /** initial, continueAs, compaction, subagent, or a plugin's own value */
  reason: string;
  config: Config;
}

/** FrameSwitch requests a new frame in which the work continues. lashd ignores it if key or task is blank, or if key is the key of the current frame. */
export interface FrameSwitch {
  key: string;
  task: string;
  nodes?: NodeBody[];
}

/** Gap reports that events cannot be replayed. The client must read the session again. */
export interface Gap {
  sessionId: SessionID;
  fromSeq: Seq;
  toSeq: Seq;
  /** trimmed, otherStore or rolledBack */
  reason: string;
}

/** GenerationOptions are options for a model call. The call's record says which options were applied. */
export interface GenerationOptions {
  maxOutput?: number;
  temperature?: number;
  seed?: number;
  stop?: string[];
  /** low, medium or high, for models that take it */
  verbosity?: string;
}

/** GraphAppendParams appends nodes to history, even during a turn. */
export interface GraphAppendParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  nodes: NodeBody[];
  /** must still be on the active branch */
  requiresAncestorNodeId?: NodeID;
  /** repeating an operation id appends its nodes only once */
  operationId?: string;
}

/** GraphAppendResult reports whether the nodes were appended. A stale branch is a result, not an error. */
export interface GraphAppendResult {
  status: AppendStatus;
  nodeIds?: NodeID[];
  leaf: NodeID;
  seq: Seq;
  duplicate?: boolean;
}

/** GraphPinParams pins or unpins a node of the active branch. */
export interface GraphPinParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  nodeId: NodeID;
  reason?: string;
}

/** GraphReadParams selects nodes of the active branch, going back from a cursor. */
export interface GraphReadParams {
  sessionId: SessionID;
  cursor?: string;
  /** 1 to 500; absent: 200. A page holds at most about 4 MiB */
  limit?: number;
}

/** GraphReadResult is a page of nodes in order, with the session's head and pins. */
export interface GraphReadResult {
  head: Head;
  data: Node[];
  pins: PinInfo[];
  nextCursor?: string;
}

/** Head is a session's position in its history. Revision increases by one with each commit that changes the leaf or the configuration. */
export interface Head {
  revision: number;
  leaf: NodeID;
  generation: number;
  frame: FrameID;
}

/** HeadResult is the head of a session after a change. */
export interface HeadResult {
  head: Head;
  seq: Seq;
  duplicate?: boolean;
}

/** HostRules are the patterns of a policy's rules about hosts. A host that Ask matches is not allowed by Allow. */
export interface HostRules {
  allow?: string[];
  ask?: string[];
}

/** HostsRetry runs a call again that lacked hosts. */
export interface HostsRetry {
  /** what the call reaches in addition, to show to people */
  hosts: string[];
  /** arguments of the call */
  retry: unknown;
}

/** Hunk is one region of a diff. Lines count from 1. */
export interface Hunk {
  oldStart: number;
  oldLines: number;
  newStart: number;
  newLines: number;
  /** lines that begin with a space, - or +; after a last line without newline comes a line that begins with a backslash */
  text: string;
}

/** InitializeParams opens a connection. */
export interface InitializeParams {
  /** absent: any version */
  protocolVersion?: number;
  clientInfo: ClientInfo;
  /** from an earlier connection: the client keeps its tools and their pending calls */
  clientId?: ClientID;
  capabilities?: ClientCapabilities;
}

/** InitializeResult describes the daemon and its store. */
export interface InitializeResult {
  protocolVersion: number;
  serverInfo: ClientInfo;
  clientId: ClientID;
  storeId: string;
  /** random, below 10^14; after a change of store or epoch, attaching with an old cursor returns a gap */
  epoch: number;
  features: string[];
  dataDir: string;
  /** names of API keys missing from the daemon's environment; send them with model/setKey */
  keysWanted?: string[];
}

/** inp_... */
export type InputID = string;

/** InputPart is one piece of an input: text or an attachment. */
export interface InputPart {
  type: InputType;
  text?: string;
  attachment?: Attachment;
}

/** InputState is the state of an input. */
export type InputState = "pendingActive" | "deferredNextTurn" | "queued" | "accepted" | "completed" | "cancelled";

/** InputType is the kind of an input part. */
export type InputType = "text" | "attachment";

/** InstructionFile is a file of instructions that applies to a session. */
export interface InstructionFile {
  /** absolute */
  path: string;
  /** as the model sees it */
  name: string;
  origin: InstructionOrigin;
  use: InstructionUse;
  /** size of the file */
  bytes: number;
  /** what the model gets of it */
  shownBytes: number;
  /** name of the file that imports it, or that names it if it is skipped */
  importedBy?: string;
  /** why it is skipped, as the end of a sentence */
  problem?: string;
  description?: string;
  /** of the files that it is about */
  patterns?: string[];
}

/** InstructionListResult lists the files of instructions of a session: those of the user first, then those of the workspace, the closest last. */
export interface InstructionListResult {
  data: InstructionFile[];
  /** where the person's own instructions belong; it may not exist */
  userFile: string;
}

/** InstructionOrigin says whose file a file of instructions is. */
export type InstructionOrigin = "user" | "workspace";

/** InstructionUse says when the model gets a file of instructions. */
export type InstructionUse = "always" | "added" | "matches" | "listed" | "skipped";

/** IntentKind is the name of the field that an intent sets. */
export type IntentKind = "startTask" | "signalTask" | "cancelTask" | "emitTaskEvent" | "emitTrigger";

/** IntentOutcome says whether lashd carried out an intent. An accepted intent is committed together with the result of its call. */
export interface IntentOutcome {
  /** derived from session, turn, call and position */
  intentId: string;
  kind?: IntentKind;
  taskId?: TaskID;
  /** absent: accepted */
  refused?: IntentRefusal;
  message?: string;
}

/** IntentRefusal says why lashd did not carry out an intent. */
export type IntentRefusal = "malformed" | "tooMany" | "tooManyOfKind" | "tooLarge" | "callFailed" | "noTurn" | "turnCancelled" | "invalid" | "conflict" | "taskNotFound" | "taskEnded" | "taskNotAtWork";

/** InterruptStatus is the result of a request to stop a turn. */
export type InterruptStatus = "requested" | "alreadyRequested" | "completionWon";

/** Issue is a problem in a turn. It may or may not have ended the turn. */
export interface Issue {
  /** provider, tool, plugin, protocol, store or runtime */
  kind: string;
  /** a stable name */
  code: string;
  message: string;
  stop?: StopReason;
  /** original error text, shortened to 4,000 characters (head and tail) */
  raw?: string;
  retryable?: boolean;
  /** the API key of the model's provider is missing or was refused; lash login stores another one */
  auth?: boolean;
}

/** Item is a displayable part of a turn: a message, a tool call, a notice. */
export interface Item {
  itemId: ItemID;
  kind: ItemKind;
  status: ItemStatus;
  turnId?: TurnID;
  atMs: number;
  text?: string;
  callId?: CallID;
  tool?: string;
  args?: unknown;
  /** of the tool call, for people; absent for tools that lashd does not know */
  title?: CallTitle;
  /** over the tool call; absent until it is decided */
  decision?: CallDecision;
  output?: ToolOutput;
  durationMs?: number;
  attachment?: Attachment;
  origin?: Origin;
  plugin?: PluginNode;
  /** of code; text is its source */
  language?: string;
  /** result of a code cell; absent while it is in progress */
  cell?: CodeResult;
}

/** node id and part index: nod_...:0 */
export type ItemID = string;

/** ItemKind says what an item shows. */
export type ItemKind = "userMessage" | "agentMessage" | "reasoning" | "toolCall" | "codeCell" | "fileChange" | "plan" | "compaction" | "notice";

/** ItemStatus is the state of an item. */
export type ItemStatus = "inProgress" | "completed" | "failed" | "unknown";

/** ListedRule is an approval rule and where it comes from. */
export interface ListedRule {
  /** for rule/remove; absent: only the file can be changed */
  ruleId?: string;
  level: RuleLevel;
  rule: ApprovalRule;
  /** config.toml, .agents/rules.toml, .claude/settings.json, lashd for a stored rule of the workspace, settings for those of a session, or answer */
  from: string;
  /** an answer for exactly one call of the rule's tool, with the arguments of that call */
  exact?: boolean;
  /** with exact: the arguments of the call in one line, for people; up to 200 characters */
  about?: string;
  /** client that answered */
  by?: string;
}

/** LoginParties are the servers that take part in an OAuth login. The MCP server names the authorization server, which names the hosts. lashd sends the code of the login only to the host in token. */
export interface LoginParties {
  /** host of the MCP server */
  server: string;
  /** address of the authorization server */
  issuer: string;
  /** host of the login page */
  authorization: string;
  /** host that gets the result of the login and issues the tokens */
  token: string;
  /** sentences for the person, if not all of them have the host of the MCP server */
  warning?: string;
}

/** MCPCancelLoginParams ends a login in progress. */
export interface MCPCancelLoginParams {
  loginId: string;
}

/** MCPCompleteParams asks for values of an argument of a prompt, or of a variable of a template. */
export interface MCPCompleteParams {
  sessionId: SessionID;
  server: string;
  /** name of a prompt at the server */
  prompt?: string;
  /** uri of a template; absent with prompt */
  template?: string;
  argument: string;
  /** what the person has typed */
  value: string;
  /** values of the other arguments */
  arguments?: Record<string, string>;
}

/** MCPCompleteResult has values, best first. */
export interface MCPCompleteResult {
  values: string[];
  /** the server has more */
  more?: boolean;
}

/** MCPFinishLoginParams finishes a login. */
export interface MCPFinishLoginParams {
  loginId: string;
  /** the whole address that the browser opened, with its code */
  address: string;
}

/** MCPLoginParams starts a login to an MCP server. */
export interface MCPLoginParams {
  server: string;
  plugin?: string;
  cwd?: string;
  /** Redirect is the address of a listener of the client on this machine, such as http://127.0.0.1:4711/callback. The browser opens it after the login. Absent: the person copies the address of the page that the browser cannot load. */
  redirect?: string;
}

/** MCPLoginResult is a login in progress. It ends after ten minutes, or when another one for the server begins. */
export interface MCPLoginResult {
  loginId: string;
  /** show it to the person, or open it in the browser */
  url: string;
  /** beginning of the address that the browser opens after the login */
  redirect: string;
  /** show them to the person before the browser opens */
  parties: LoginParties;
}

/** MCPLogoutResult says whether there was a login. */
export interface MCPLogoutResult {
  had: boolean;
}

/** MCPResourcesParams selects the servers of a session. */
export interface MCPResourcesParams {
  sessionId: SessionID;
}

/** MCPResourcesResult lists resources by server. */
export interface MCPResourcesResult {
  data: ResourceInfo[];
  /** servers that did not answer */
  failed: ServerFailure[];
}

/** MCPRestartResult is the server after its restart: ready, or failed with its error. */
export interface MCPRestartResult {
  server: PluginServer;
}

/** MCPServer configures an MCP server, with the names of .mcp.json. Set either command or url. lashd does not expand variables in it and does not store it. Values of env and headers never appear in output of lashd. */
export interface MCPServer {
  /** absent: stdio with a command, http with a url */
  type?: MCPTransport;
  /** a program name to look up in PATH, or an absolute path; never run through a shell */
  command?: string;
  /** arguments of the program */
  args?: string[];
  /** environment of the program, in addition to a few standard variables such as PATH */
  env?: Record<string, string>;
  /** address of a streamable HTTP server */
  url?: string;
  /** HTTP headers of every request */
  headers?: Record<string, string>;
  /** time limit of a call; absent: ten minutes */
  timeoutMs?: number;
}

/** MCPServerParams names an MCP server of a plugin. */
export interface MCPServerParams {
  /** as in plugin/list */
  server: string;
  /** required if several plugins have a server of that name */
  plugin?: string;
  /** also search the plugins of this workspace */
  cwd?: string;
}

/** MCPServers are MCP servers that a client adds to a session, by name. The model sees their tools as mcp__name__tool. They are removed when the client disconnects. */
export type MCPServers = Record<string, MCPServer>;

/** MCPTransport says how lashd connects to an MCP server. */
export type MCPTransport = "stdio" | "http";

/** Message is one entry of a conversation. */
export interface Message {
  role: Role;
  parts: Part[];
  origin?: Origin;
}

/** MissedTicks says what to do about missed times of a schedule. The newest time is not missed if it is less than a minute late. */
export type MissedTicks = "skip" | "runOnce" | "runAll";

/** Modality is a kind of attachment that a model can read. */
export type Modality = "image" | "pdf" | "text";

/** ModelInfo describes a configured model. */
export interface ModelInfo {
  /** for session/new */
  name: string;
  /** name for people */
  title?: string;
  model: ModelSpec;
  default?: boolean;
  /** absent: no price is configured */
  price?: Price;
  /** with check: why calls to this model would fail */
  problem?: Issue;
}

/** ModelListParams selects the details of model/list. */
export interface ModelListParams {
  /** also ask each model's server whether it accepts requests; takes up to five seconds */
  check?: boolean;
  /** also list the models of servers whose models lashd does not know, such as those on this machine; takes up to five seconds */
  servers?: boolean;
}

/** ModelListResult lists the configured models. */
export interface ModelListResult {
  data: ModelInfo[];
}

/** ModelSetDefaultParams names the model of new sessions. */
export interface ModelSetDefaultParams {
  /** PROVIDER/ID, or a name from model/list */
  name: string;
}

/** ModelSetDefaultResult says whether new sessions use the model at once. */
export interface ModelSetDefaultResult {
  /** the daemon uses the model after its restart */
  restart?: boolean;
}

/** ModelSetKeyParams gives the daemon an API key that its environment lacks. lashd keeps it in memory only. */
export interface ModelSetKeyParams {
  /** one of keysWanted from initialize, or the name of a provider */
  name: string;
  key: string;
  /** forget the key that a client gave before; key must be empty */
  forget?: boolean;
}

/** ModelSpec names a model and states its abilities. It comes from the configuration; lashd infers nothing from the name. */
export interface ModelSpec {
  provider: string;
  id: string;
  /** tokens; 0: unknown */
  contextWindow?: number;
  /** tokens; 0: unknown */
  outputLimit?: number;
  /** what the model reads besides text; absent: unknown, and lashd sends it images */
  inputs?: Modality[];
  /** absent: not configurable */
  reasoning?: ReasoningSpec;
  /** one of reasoning.efforts */
  effort?: string;
  /** absent: short */
  cache?: CacheRetention;
  /** a failed call may be repeated even after output began */
  idempotent?: boolean;
  pinnedSampling?: boolean;
}

/** ModelTestParams names the model to test. */
export interface ModelTestParams {
  /** default the default model */
  name?: string;
}

/** ModelTestResult is the reply of a model to a prompt of two words. */
export interface ModelTestResult {
  name: string;
  text: string;
  durationMs: number;
}

/** Monitor is the current state of a monitor. */
export interface Monitor {
  spec: MonitorSpec;
  /** the plugin that declares it */
  plugin?: string;
  /** it is running, or starts at the next turn, monitor/status or monitor/updates */
  armed: boolean;
  state: MonitorState;
  /** its newest run */
  taskId?: TaskID;
  /** the start of its newest line */
  lastEvent?: string;
  /** why its newest run failed */
  lastError?: string;
  /** exit code of its newest run */
  lastExitCode?: number;
  /** lines reported */
  eventCount: number;
  /** lines not reported because they came too fast */
  droppedCount?: number;
  wakeOutstanding?: boolean;
}

/** MonitorAckParams acknowledges the wakes of monitors. */
export interface MonitorAckParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  monitorIds: string[];
}

/** MonitorArm says when a monitor starts. */
export type MonitorArm = "manual" | "sessionStart";

/** MonitorResult is a monitor after a change. */
export interface MonitorResult {
  monitor: Monitor;
  /** it was already running */
  existing?: boolean;
  seq: Seq;
  duplicate?: boolean;
}

/** MonitorSpec configures a monitor. */
export interface MonitorSpec {
  /** letters, digits, dots, dashes and underscores; for a monitor of a plugin, preceded by the plugin's name and a colon */
  monitorId: string;
  /** run by sh */
  command: string;
  /** relative to the session's directory; absent: the session's directory */
  cwd?: string;
  /** additional environment variables */
  env?: Record<string, string>;
  /** absent: the command runs outside a sandbox */
  sandbox?: SandboxMode;
  /** hosts that the command reaches from its sandbox; absent: none */
  network?: NetworkAccess;
  /** no time limit */
  persistent?: boolean;
  /** time limit, after which lashd stops the monitor as failed; 0: 300000; at most 3600000 */
  timeoutMs?: number;
  armOn?: MonitorArm;
  wake?: MonitorWake;
  /** restart it after a restart of the daemon, and when its session is restored or forked */
  restartOnRestore?: boolean;
}

/** MonitorStartParams starts a monitor. Without a command, it starts the known monitor with that id. */
export interface MonitorStartParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  spec: MonitorSpec;
}

/** MonitorState is the state of a monitor. */
export type MonitorState = "idle" | "running" | "stopped" | "exited" | "failed";

/** MonitorStatusResult lists the monitors of a session, sorted by id. */
export interface MonitorStatusResult {
  /** increases with every change except lines and wakes */
  revision: number;
  activeCount: number;
  data: Monitor[];
}

/** MonitorStopParams stops a monitor. */
export interface MonitorStopParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  monitorId: string;
  reason?: string;
}

/** MonitorStream is the output stream of a line. */
export type MonitorStream = "stdout" | "stderr";

/** MonitorUpdate is a line of a monitor or the end of a run. */
export interface MonitorUpdate {
  /** increases within the session and never restarts */
  sequence: number;
  monitorId: string;
  atMs: number;
  /** set for a line */
  stream?: MonitorStream;
  /** set at the end of a run: the monitor's new state */
  state?: MonitorState;
  message: string;
  /** the line was truncated */
  cut?: boolean;
  /** number of lines after this one that were not reported because they came too fast */
  dropped?: number;
  /** the line is part of a wake */
  wakes?: boolean;
}

/** MonitorUpdatesResult holds the updates since the last monitor/updates call of the session, at most the newest 128. Each update is returned once. A gap in the sequence means that updates were dropped; the session's events still have them. */
export interface MonitorUpdatesResult {
  revision: number;
  activeCount: number;
  events: MonitorUpdate[];
}

/** MonitorWake says what a line on a monitor's standard output does. A line on its standard error only produces an event. */
export type MonitorWake = "queueTurn" | "notify";

/** NetworkAccess says which hosts a command in a sandbox reaches. lashd computes it when it judges the call. It does not change while the command runs. A pattern is a name, "*.name" for the names below one, "*" for all names, or an address, each with an optional port. Without a port, ports 80 and 443 are meant where something is allowed, and every port where it is denied or asked about. */
export interface NetworkAccess {
  /** Granted are hosts that the call named, and that were allowed. */
  granted?: string[];
  /** Rules are those of each policy that applies to the call. A host that is not granted must be allowed by all of them. */
  rules?: HostRules[];
  /** Denied are hosts that a rule denies, whatever else allows them. */
  denied?: string[];
}

/** Node is an immutable entry of a session's history. Exactly one of message, plugin and frameOpen is set. */
export interface Node {
  nodeId: NodeID;
  /** absent only for the root, which opens a frame */
  parent?: NodeID;
  /** distance from the root: 0 for the root, else the parent's + 1 */
  generation: number;
  frame: FrameID;
  turnId?: TurnID;
  atMs: number;
  message?: Message;
  plugin?: PluginNode;
  frameOpen?: FrameOpen;
  /** a compaction repeated this message of an older frame; people see it only there */
  kept?: boolean;
}

/** NodeBody is the content of a node before it has a place in history. Exactly one field is set. */
export interface NodeBody {
  message?: Message;
  plugin?: PluginNode;
  frameOpen?: FrameOpen;
}

/** nod_..., derived from session, operation and ordinal */
export type NodeID = string;

/** Occurrence is one emitted event with its deliveries to triggers. */
export interface Occurrence {
  occurrenceId: OccurrenceID;
  type: string;
  sourceKey?: string;
  occurrenceKey: string;
  payload: unknown;
  atMs: number;
  deliveries: TriggerDelivery[];
}

/** occ_..., derived from source and occurrence key */
export type OccurrenceID = string;

/** OnCancel says what happens to the external work of a pending call when the turn is cancelled. */
export type OnCancel = "ignore" | "cancel";

/** OnTimeout says what happens when the deadline of a pending call passes. */
export type OnTimeout = "failCall" | "failTurn";

/** OperationInfo describes an operation of a plugin. Its name is unique in a session. */
export interface OperationInfo {
  name: string;
  plugin: string;
  description?: string;
  kind: OperationKind;
  session: SessionRule;
  inputSchema?: unknown;
  outputSchema?: unknown;
}

/** OperationKind says what an operation may do and when it may run. */
export type OperationKind = "query" | "command" | "task";

/** OperationListParams selects a session. Without one, the result lists the operations of new sessions. */
export interface OperationListParams {
  sessionId?: SessionID;
}

/** OperationListResult lists operations, sorted by name, and the inputs that plugins accept with turn/start. */
export interface OperationListResult {
  data: OperationInfo[];
  turnInputs: TurnInputInfo[];
}

/** OperationParams calls an operation. */
export interface OperationParams {
  idempotencyKey?: string;
  /** required, optional or forbidden, as the operation declares */
  sessionId?: SessionID;
  name: string;
  /** absent: an empty object */
  args?: unknown;
}

/** OperationQueryParams calls a query. */
export interface OperationQueryParams {
  /** required, optional or forbidden, as the operation declares */
  sessionId?: SessionID;
  name: string;
  /** absent: an empty object */
  args?: unknown;
}

/** OperationQueryResult is the plugin's response. */
export interface OperationQueryResult {
  plugin: string;
  output: unknown;
}

/** OperationReceipt is the result of an operation. All its effects are stored. */
export interface OperationReceipt {
  plugin: string;
  output: unknown;
  /** nodes that it added to history */
  events: PluginNode[];
  /** inputs that it queued, in this call or an earlier identical one */
  inputs: QueuedInput[];
  /** problems that did not stop it */
  issues?: Issue[];
  /** 0 without a session */
  seq: Seq;
  duplicate?: boolean;
}

/** OptionReceipt says whether a generation option was applied. */
export interface OptionReceipt {
  option: string;
  /** applied, clamped, omittedUnsupported, omittedPinned or omittedOtherRoute */
  fate: string;
}

/** Origin records where a message came from. */
export interface Origin {
  kind: OriginKind;
  turnId?: TurnID;
  inputId?: InputID;
  plugin?: string;
  /** set if the message is a wake */
  cause?: TurnCause;
  /** shown to the model once, never stored */
  transient?: boolean;
}

/** OriginKind says what added a message to history. */
export type OriginKind = "turnInput" | "plugin" | "process";

/** OutcomeKind says how a turn ended. */
export type OutcomeKind = "assistantMessage" | "finalValue" | "toolValue" | "frameSwitch" | "cancelled" | "incomplete" | "invalidValue" | "invalidInput" | "maxTurns" | "toolFailure" | "providerError" | "pluginAbort" | "runtimeError" | "submittedError" | "toolError";

/** OutputState says whether the text of a turn is usable. */
export type OutputState = "usable" | "empty" | "tracebackOnly" | "recoveredFromError";

/** OutputStatus says how a tool call ended. */
export type OutputStatus = "success" | "failure" | "cancelled" | "unknown";

/** OverlayMode says how new generation options combine with the current ones. */
export type OverlayMode = "replace" | "merge";

/** Part is one piece of a message. Kind determines which other fields are set. */
export interface Part {
  kind: PartKind;
  text?: string;
  call?: ToolCall;
  /** over the call; only lashd sets it, once the call is decided */
  decision?: CallDecision;
  result?: ToolResult;
  attachment?: Attachment;
  cell?: CodeResult;
  /** the provider's own block; only its adapter reads it */
  replay?: unknown;
  /** provider, endpoint and model that produced Replay */
  route?: string;
  /** set only in prompt views; stored nodes are never pruned */
  prune?: Prune;
}

/** PartKind says what a part of a message holds. */
export type PartKind = "text" | "prose" | "commentary" | "reasoning" | "toolCall" | "toolResult" | "code" | "output" | "error" | "attachment";

/** PinInfo describes a pinned node. */
export interface PinInfo {
  nodeId: NodeID;
  reason?: string;
  atMs: number;
}

/** PluginArtifact is a large piece of a plugin's state. Small artifacts are inline in data; read others with artifact/read. */
export interface PluginArtifact {
  name: string;
  digest: Digest;
  size: number;
  data?: string;
}

/** PluginChange is the change of one plugin by a reload. */
export interface PluginChange {
  name: string;
  change: PluginChangeKind;
  /** added contributions, as kind and name */
  added?: string[];
  /** removed contributions, as kind and name */
  removed?: string[];
}

/** PluginChangeKind says how a reload changes a plugin. */
export type PluginChangeKind = "added" | "changed" | "removed" | "unchanged";

/** PluginContribution is something that a plugin adds to sessions. */
export interface PluginContribution {
  /** tool, hook, operation, task, prompt, server, process, trigger, extension, toolSwitches, input, moreTools, state or codeExecutor */
  kind: string;
  name: string;
  detail?: string;
}

/** PluginEnableParams enables or disables a plugin of any scope. */
export interface PluginEnableParams {
  idempotencyKey?: string;
  name: string;
  /** workspace of the plugin, as in plugin/read */
  cwd?: string;
  enabled: boolean;
}

/** PluginExecutable is a program outside a plugin's directory. */
export interface PluginExecutable {
  /** as written in the plugin's files */
  name: string;
  /** its path, with symbolic links resolved */
  path: string;
  digest: Digest;
}

/** PluginFile is a file outside a plugin's directory that a command of the plugin names. */
export interface PluginFile {
  path: string;
  /** absent: the file does not exist */
  digest?: Digest;
}

/** PluginInfo is the current state of a plugin. */
export interface PluginInfo {
  /** from its manifest; else the name of its directory */
  name: string;
  version?: string;
  description?: string;
  scope: PluginScope;
  dir?: string;
  status: PluginStatus;
  /** of the running version */
  digest?: Digest;
  /** of the current files, if they differ from the running version */
  found?: Digest;
  /** the generation that loaded it */
  generation?: number;
  problems?: PluginProblem[];
  /** sandbox of all its programs, including those of an older version that sessions still use; absent: no sandbox */
  sandbox?: string;
  process?: PluginProcess;
  /** MCP servers, sorted by name */
  servers?: PluginServer[];
}

/** PluginInputs maps plugin ids to inputs that only that plugin understands. */
export type PluginInputs = Record<string, unknown>;

/** PluginListParams selects the plugins of sessions in a directory. */
export interface PluginListParams {
  /** absent: without workspace plugins */
  cwd?: string;
}

/** PluginListResult lists plugins in the order in which lashd calls them, including those that are not loaded. */
export interface PluginListResult {
  /** of the running set of plugins */
  generation: number;
  data: PluginInfo[];
  roots: PluginRoot[];
  /** where plugins of the user belong, such as the plugin mcp of lash mcp add; it may not exist */
  userDir?: string;
}

/** PluginLogLine is a line that a plugin printed, or that lashd logged about it. */
export interface PluginLogLine {
  atMs: number;
  level: string;
  text: string;
}

/** PluginLogsParams selects the newest log lines of a plugin. */
export interface PluginLogsParams {
  name: string;
  /** workspace of the plugin, as in plugin/read */
  cwd?: string;
  /** 1 to 1000; absent: 100 */
  limit?: number;
}

/** PluginLogsResult holds log lines, oldest first. */
export interface PluginLogsResult {
  data: PluginLogLine[];
}

/** PluginNode is an entry of history that only its plugin understands. */
export interface PluginNode {
  /** the plugin that added it; absent: not verified by lashd */
  plugin?: string;
  type: string;
  body: unknown;
}

/** PluginOptions maps plugin ids to settings that only that plugin understands. */
export type PluginOptions = Record<string, unknown>;

/** PluginProblem is a mistake in a file of a plugin, or another problem with it. */
export interface PluginProblem {
  /** relative to the plugin's directory */
  file?: string;
  line?: number;
  column?: number;
  message: string;
  /** the plugin still loads */
  warning?: boolean;
}

/** PluginProcess is the state of a plugin's process. */
export interface PluginProcess {
  /** idle, starting, running, failed, quarantined or resumed */
  state: string;
  /** its sandbox */
  sandbox?: string;
  /** why it ended the last time */
  error?: string;
}

/** PluginReach lists what a plugin uses outside its directory. */
export interface PluginReach {
  /** commands that it may run, as written in its files */
  commands?: string[][];
  /** the programs of these commands */
  executables?: PluginExecutable[];
  /** files outside the plugin that the commands name; a change of one needs a new approval */
  files?: PluginFile[];
  /** for people: commands that may run or load files which the approval does not cover, and why */
  uncovered?: string[];
  /** addresses of its servers */
  addresses?: string[];
  /** names of variables that it receives from lashd's environment */
  environment?: string[];
  /** capabilities that it requests from lashd */
  capabilities?: string[];
  /** one of its hooks changes session settings; it can make approval only stricter */
  configures?: boolean;
}

/** PluginReadParams selects a plugin. */
export interface PluginReadParams {
  name: string;
  /** workspace of the plugin; absent: a plugin outside workspaces */
  cwd?: string;
  /** also return the files that trust covers */
  files?: boolean;
}

/** PluginReadResult describes a plugin for review before you trust it. */
export interface PluginReadResult {
  plugin: PluginInfo;
  /** of the current files, or of the running version if these cannot be read */
  contributes: PluginContribution[];
  /** of the same version */
  reach: PluginReach;
  /** of the reviewed files, for plugin/trust; absent: they are already running */
  digest?: Digest;
  /** with files: true, all files that the digest covers */
  files?: PluginReviewFile[];
  /** with files: true, those of the running version if it differs */
  before?: PluginReviewFile[];
}

/** PluginReloadParams selects the plugin directories to scan. */
export interface PluginReloadParams {
  idempotencyKey?: string;
  /** the workspace to scan besides the user's plugins; absent: all known workspaces */
  cwd?: string;
  /** only report what would change */
  dryRun?: boolean;
  /** queue: sessions use the change from their next turn on; the default. refuse: fail if any turn is running */
  whenBusy?: WhenBusy;
}

/** PluginReloadResult lists the changes of a reload. */
export interface PluginReloadResult {
  duplicate?: boolean;
  generation: number;
  data: PluginChange[];
  /** tools or prompt texts change, so the provider's prompt cache becomes useless */
  prefix: boolean;
  /** plugins whose running version differs from their files, with the reasons */
  problems?: PluginInfo[];
}

/** PluginResult is a plugin after a change. */
export interface PluginResult {
  duplicate?: boolean;
  plugin: PluginInfo;
}

/** PluginReviewFile is a file that the digest of a plugin covers. */
export interface PluginReviewFile {
  /** relative to the directory of the plugin; absolute: a file or program outside it */
  path: string;
  /** in bytes */
  size?: number;
  /** of its bytes */
  digest?: Digest;
  /** where the symbolic link leads */
  link?: string;
  executable?: boolean;
  /** absent: it is empty, a binary file, a file over 256 KiB, or beyond 1 MiB of all texts */
  text?: string;
}

/** PluginRoot is a directory in which lashd looks for plugins. */
export interface PluginRoot {
  dir: string;
  /** events or polling */
  watch: string;
  /** why lashd does not watch all of it with events */
  reason?: string;
}

/** PluginScope says where a plugin comes from. */
export type PluginScope = "builtin" | "user" | "workspace";

/** PluginServer is the state of an MCP server of a plugin. */
export interface PluginServer {
  name: string;
  /** stdio or http */
  transport: string;
  /** idle, starting, ready, failed, quarantined, unreachable or resumed */
  state: string;
  /** number of its tools */
  tools: number;
  /** name and version that it reports */
  product?: string;
  /** where lashd starts it: in the sandbox of the session, or why not; absent: lashd does not start it */
  sandbox?: string;
  error?: string;
  /** whether a person has logged in to it, or has to; absent: it has required no login so far */
  login?: ServerLogin;
}

/** PluginSource says whether a session that starts from another one also takes over its plugin state and tool settings. */
export type PluginSource = "fork" | "fresh";

/** PluginState is the saved state of a plugin. */
export interface PluginState {
  plugin: string;
  version: string;
  revision: string;
  state?: unknown;
  artifacts?: PluginArtifact[];
}

/** PluginStatus says whether a plugin is loaded. */
export type PluginStatus = "loaded" | "degraded" | "failed" | "untrusted" | "modified" | "disabled";

/** PluginTrustParams trusts a workspace plugin with exactly the files of a digest. */
export interface PluginTrustParams {
  idempotencyKey?: string;
  name: string;
  cwd: string;
  /** from plugin/read */
  digest: Digest;
}

/** PluginUntrustParams revokes every approval of a workspace plugin. The plugin stops running. */
export interface PluginUntrustParams {
  idempotencyKey?: string;
  name: string;
  cwd: string;
}

/** PointID names a file point: fpt_... */
export type PointID = string;

/** PointKind says what changed the files of a file point. */
export type PointKind = "turn" | "rewind";

/** PointState is the state of a file point. */
export type PointState = "open" | "closed";

/** Policy is the approval configuration of a requester, with its directory and driver. */
export interface Policy {
  approval: ApprovalConfig;
  /** base directory of relative paths in the rules */
  cwd: string;
  /** the requester's driver; sessions with another driver run no code cells */
  driver?: string;
}

/** PreviewKind is what a call does to a file. */
export type PreviewKind = "create" | "change" | "delete";

/** Price is the price of a model per million tokens, in US dollars. */
export interface Price {
  input: number;
  output: number;
  /** for tokens read from a cache */
  cached: number;
  /** for tokens written to a cache; 0: the price of input */
  written?: number;
}

/** ProviderBeginLoginParams begins the login to a provider that takes one in place of a key. */
export interface ProviderBeginLoginParams {
  name: string;
  /** with a code that the person enters on any device */
  device?: boolean;
}

/** ProviderBeginLoginResult is what a person needs for a login. */
export interface ProviderBeginLoginResult {
  /** for provider/finishLogin; valid for 15 minutes */
  loginId: string;
  /** page to open in a browser */
  url: string;
  /** beginning of the address that the browser opens after the login and cannot load; the person copies all of it */
  redirect?: string;
  /** with device: to enter on that page */
  code?: string;
}

/** ProviderFinishLoginParams finishes a login. */
export interface ProviderFinishLoginParams {
  loginId: string;
  /** address that the browser opened; absent with device: lashd waits until the person has entered the code */
  address?: string;
}

/** ProviderInfo is a provider of models: one that lashd knows, or one of config.toml. It has no key. */
export interface ProviderInfo {
  name: string;
  /** for people, such as Anthropic */
  title: string;
  /** without user and query, which can have a key; absent: a person must name it */
  baseUrl?: string;
  /** form of an address that a person must name */
  baseUrlForm?: string;
  /** web page where a person gets a key */
  keysAt?: string;
  /** a server on this machine, which needs no key */
  local?: boolean;
  /** provider/setKey stores a key that a person pastes */
  pasted?: boolean;
  /** provider/beginLogin logs a person in with a browser */
  login?: boolean;
  /** where the key comes from: stored, config.toml, client, or the name of an environment variable; absent: there is none */
  key?: string;
  /** provider/removeKey can delete a key or a login */
  stored?: boolean;
  /** ids of the models of a local server that runs */
  models?: string[];
  /** the local server runs, but takes no request without a key; provider/setKey stores one */
  keyWanted?: boolean;
}

/** ProviderListResult lists providers: those that lashd knows, then the others of config.toml. */
export interface ProviderListResult {
  data: ProviderInfo[];
}

/** ProviderModelsResult has the models that the server of a provider lists. */
export interface ProviderModelsResult {
  /** ids; empty if the server has no list */
  data: string[];
}

/** ProviderParams names a provider. */
export interface ProviderParams {
  name: string;
}

/** ProviderRemoveKeyResult says what is left after the removal of a key. */
export interface ProviderRemoveKeyResult {
  /** where a key of the provider still comes from, as in ProviderInfo */
  key?: string;
}

/** ProviderSetAddressParams has the address of a server that needs no key. lashd asks the server for its models before it writes the address. */
export interface ProviderSetAddressParams {
  name: string;
  baseUrl: string;
}

/** ProviderSetAddressResult says whether lashd wrote the address. */
export interface ProviderSetAddressResult {
  /** no: the server wants a key; use provider/setKey with the key and the address */
  keyWanted?: boolean;
  /** yes, and the daemon uses it after its restart */
  restart?: boolean;
}

/** ProviderSetKeyParams has the API key of a provider. lashd tests the key with one small call before it stores it. */
export interface ProviderSetKeyParams {
  name: string;
  /** as a person pasted it */
  key: string;
  /** also write this address of the provider into config.toml, if the key works */
  baseUrl?: string;
  /** store the key without a test */
  untested?: boolean;
}

/** Prune marks a part that a prompt view shortened. */
export interface Prune {
  state: PruneState;
  /** text shown instead */
  breadcrumb?: string;
  /** digest of the part's full content */
  archive?: Digest;
}

/** PruneState says how a prompt view shortened a part. */
export type PruneState = "cleared" | "deleted" | "summarised";

/** QueueCancelParams removes an input that has not entered a turn. */
export interface QueueCancelParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  inputId: InputID;
  /** also remove all inputs after it */
  suffix?: boolean;
}

/** QueueCancelResult holds the status of each affected input. */
export interface QueueCancelResult {
  data: CancelledInput[];
  seq: Seq;
  duplicate?: boolean;
}

/** QueueHold says why no queued input starts now. */
export type QueueHold = "empty" | "turnRunning" | "waitingForDecision" | "heldByCommand" | "storageFull" | "retryLater" | "otherDaemon" | "shuttingDown";

/** QueueListParams selects the inputs of a session. */
export interface QueueListParams {
  sessionId: SessionID;
  all?: boolean;
}

/** QueueListResult lists the queued inputs. With all, it also lists the newest completed and cancelled inputs. */
export interface QueueListResult {
  data: QueuedInput[];
  hold: QueueHold;
}

/** QueuedInput is an input and its state in the queue. */
export interface QueuedInput {
  inputId: InputID;
  /** the turn that uses it */
  turnId: TurnID;
  state: InputState;
  input: InputPart[];
  pluginInputs?: PluginInputs;
  boundary?: Boundary;
  /** set if a plugin queued it (plugin id and the plugin's key) or a wake did */
  source?: string;
  atMs: number;
  /** set if the input is a wake */
  wake?: QueuedWake;
  /** why a cancelled wake was not delivered */
  refused?: WakeRefusal;
  turnOptions?: TurnOptions;
  /** reasoning effort of its turn */
  effort?: string;
  /** maximum number of model calls of its turn */
  iterations?: number;
  /** JSON Schema of the value of its turn */
  schema?: unknown;
  /** number of frame switches that led to it; it is the task of the last one */
  switches?: number;
  /** set if a plugin or another session sent it: limits of its turn, in addition to the session's own */
  ceiling?: Ceiling;
}

/** QueuedWake holds the details of an input that is a wake. */
export interface QueuedWake {
  /** without text; the input holds the text */
  cause: TurnCause;
  delivery: Delivery;
  /** queued wakes with the same key may share a turn */
  merge?: string;
  expiresAtMs?: number;
  /** name of an ordered series of wakes */
  stream?: string;
  /** position in the stream */
  ordinal?: number;
}

/** ReasoningEncoding says how a request tells the model the effort. An API ignores encodings that it does not have. */
export type ReasoningEncoding = "effort" | "budget";

/** ReasoningSpec lists the reasoning efforts of a model. The effort "off" turns reasoning off. */
export interface ReasoningSpec {
  efforts: string[];
  default?: string;
  mandatory?: boolean;
  /** absent: effort */
  encoding?: ReasoningEncoding;
  /** tokens by effort, for the encoding budget; absent: low 2048, medium 8192, high 24576 */
  budgets?: Record<string, number>;
}

/** RefusedHost is a host that a command tried to reach and that its sandbox refused. */
export interface RefusedHost {
  /** with its port, unless that is 80 or 443 */
  host: string;
  reason: string;
  /** of the first attempt, in ms since 1970 */
  atMs: number;
  /** Hosts are what the argument hosts of a call needs so that the host is reached. Absent: a rule denies it. */
  hosts?: string[];
}

/** Relation links a session to the session it was created from. */
export interface Relation {
  kind: RelationKind;
  /** of a child */
  parent?: SessionID;
  /** of a child */
  cause?: string;
  /** of a fork */
  source?: ForkSource;
  /** The session whose plugin or task requested this one. Plugins of that session may use this session's id. */
  askedBy?: SessionID;
  /** Of a child: its creator deletes it after use. If the daemon stops before that, the next daemon deletes it. */
  temporary?: boolean;
}

/** RelationKind says how a session was created. */
export type RelationKind = "root" | "child" | "fork";

/** Replay says whether lashd may repeat a call whose result was lost. */
export type Replay = "never" | "safe" | "idempotent";

/** ResourceInfo is a resource of an MCP server, or a template of resources. */
export interface ResourceInfo {
  server: string;
  /** of a template: with variables in braces, after RFC 6570 */
  uri: string;
  name: string;
  title?: string;
  description?: string;
  /** media type */
  type?: string;
  /** bytes; absent: unknown */
  size?: number;
  template?: boolean;
}

/** ResourceMention is a resource of an MCP server that a person names in an input, usually as @server:uri. */
export interface ResourceMention {
  server: string;
  uri: string;
}

/** RetryAdvice says whether a client should retry a failed request. */
export type RetryAdvice = "now" | "reload" | "never";

/** RetryStatus announces that lashd will retry a failed model call after a wait. Interrupting the turn ends the wait. */
export interface RetryStatus {
  waitMs: number;
  /** number of the next counted attempt */
  attempt: number;
  maxAttempts: number;
  /** the failed attempt counts toward maxAttempts; throttling and an unreachable server are limited by time instead */
  counted?: boolean;
  /** the error's code, or "admission": the call waits for a limit of its provider and has not failed */
  reason: string;
  /** HTTP status of the response; absent: no response */
  status?: number;
  /** the error message, without API keys */
  message?: string;
}

/** RewindFiles says whether a rewind restores files, history or both. */
export type RewindFiles = "also" | "only";

/** Role is the author of a message. */
export type Role = "user" | "assistant" | "system" | "event";

/** RuleAddParams stores a rule. A rule of a session applies from its next turn on, others at once. */
export interface RuleAddParams {
  idempotencyKey?: string;
  level: RuleLevel;
  rule: ApprovalRule;
  /** of level session; of level workspace instead of cwd */
  sessionId?: SessionID;
  /** of level workspace: absolute */
  cwd?: string;
}

/** RuleAddResult has the stored rule. */
export interface RuleAddResult {
  rule: ListedRule;
  duplicate?: boolean;
}

/** RuleLevel says whose rule it is. */
export type RuleLevel = "user" | "workspace" | "session";

/** RuleListParams names the session or the directory whose rules are listed. Without both, only rules of the user are listed. */
export interface RuleListParams {
  sessionId?: SessionID;
  /** absolute */
  cwd?: string;
}

/** RuleListResult lists the rules that apply, and what is wrong with the files that have some. */
export interface RuleListResult {
  data: ListedRule[];
  /** one sentence each, such as the error in a file; its earlier rules still apply, or lashd asks */
  problems?: string[];
}

/** RuleRemoveParams removes a rule or an answer that rule/list shows. */
export interface RuleRemoveParams {
  idempotencyKey?: string;
  ruleId: string;
  /** of a rule of level session */
  sessionId?: SessionID;
}

/** RuleRemoveResult has the removed rule. */
export interface RuleRemoveResult {
  rule: ListedRule;
  duplicate?: boolean;
}

/** RuleTestParams describes a call that is judged and not made. Without a session, a new session in cwd with default settings is assumed, which knows only lashd's own tools. */
export interface RuleTestParams {
  sessionId?: SessionID;
  cwd?: string;
  /** absent: shell */
  tool?: string;
  args?: unknown;
  /** instead of args: the command line of the call */
  command?: string;
  /** instead of args: the path of the call */
  path?: string;
}

/** RuleTestResult is what lashd would do with a call. */
export interface RuleTestResult {
  decision: ApprovalMode;
  reason: ApprovalReason;
  /** of a line with several simple commands, if it is not allowed: those that decided */
  commands?: DecidingCommand[];
  /** the sandbox in which the command would run; absent: none */
  sandbox?: SandboxMode;
}

/** SandboxMode says what the commands of a session reach. Commands in a sandbox run without a question, unless a rule or the approval mode says otherwise. Where the system has no sandbox, lashd asks instead. */
export type SandboxMode = "readOnly" | "workspace" | "fullAccess";

/** SandboxRefusal says that the sandbox seems to have refused something to a call that has ended. A client can offer to run the call once with more hosts or outside the sandbox: by tool/call with the tool's name, the arguments below as args, and tell set. */
export interface SandboxRefusal {
  /** one sentence for people, such as: The command has no network. */
  what: string;
  /** the mode in which the call ran */
  mode: SandboxMode;
  /** each host that the proxy of the command refused, in order, at most 100; absent: the rest is guessed from the output */
  hosts?: RefusedHost[];
  /** a rule that would allow such a call outside the sandbox without a question */
  rule?: ApprovalRule;
  /** the tool to call again; absent: that of the call */
  tool?: string;
  /** runs the call again in its sandbox with more hosts; absent: hosts would not help, or a rule denies them */
  withHosts?: HostsRetry;
  /** arguments that run the call outside the sandbox; absent: no tool can run it again */
  retry?: unknown;
}

/** SentInput is the text of an input, and where it was sent last. */
export interface SentInput {
  text: string;
  sessionId: SessionID;
  inputId: InputID;
  /** the turn that used it */
  turnId?: TurnID;
  atMs: number;
}

/** sequence number of an event in its session: 1, 2, 3, ... without gaps */
export type Seq = number;

/** SeqResult is the result of a change: the sequence number of its last event. */
export interface SeqResult {
  seq: Seq;
  duplicate?: boolean;
}

/** ServerBackupParams sets the directory of a backup. */
export interface ServerBackupParams {
  /** an absolute path that does not exist yet; its parent directory must exist */
  dir: string;
}

/** ServerBackupResult describes a finished and verified backup. The backup is complete unless missing or problems is set. */
export interface ServerBackupResult {
  /** usable as a data directory */
  dir: string;
  /** files that are missing or damaged in the data directory and so not in the backup */
  missing?: string[];
  /** damaged database rows, copied unchanged */
  problems?: string[];
}

/** ServerEvent is the params of server/event. It holds the current state of its subject. A slow client receives only the newest event of each subject, in the order of change. */
export interface ServerEvent {
  atMs: number;
  type: ServerEventType;
  /** of both session types */
  sessionId?: SessionID;
  /** of session/changed */
  session?: Session;
  /** of store/changed: ok, or a description of the problem */
  store?: string;
  /** of plugin/changed; without a status: the plugin was removed */
  plugin?: PluginInfo;
  /** of both trigger types */
  trigger?: Trigger;
}

/** ServerEventType is the type of a daemon event. */
export type ServerEventType = "session/changed" | "session/deleted" | "store/changed" | "plugin/changed" | "trigger/changed" | "trigger/deleted";

/** ServerFailure says why a server did not answer. */
export interface ServerFailure {
  server: string;
  reason: string;
}

/** ServerLogin says whether an MCP server has an OAuth login. */
export type ServerLogin = "needed" | "loggedIn";

/** Session describes a session, without its history. */
export interface Session {
  sessionId: SessionID;
  title?: string;
  cwd: string;
  state: SessionState;
  head: Head;
  config: Config;
  relation: Relation;
  authority?: Authority;
  /** of its newest event */
  seq: Seq;
  /** number of completed turns */
  turnIndex: number;
  /** of its own ended turns; usage/read returns the full ledger */
  usage: Usage;
  createdAtMs: number;
  updatedAtMs: number;
  archived?: boolean;
  /** the beginning of the first text that a person sent to it, at most 200 characters; only in session/list */
  firstInput?: string;
}

/** SessionArchiveParams archives a session. */
export interface SessionArchiveParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  /** take it out of the archive instead */
  undo?: boolean;
}

/** SessionAttachParams subscribes the connection to a session. */
export interface SessionAttachParams {
  sessionId: SessionID;
  /** replay the events after this one; absent: start with a snapshot */
  afterSeq?: Seq;
  /** the epoch in which the client saw afterSeq */
  epoch?: number;
}

/** SessionAttachResult is the state of the session as of seq. Every durable event after seq follows once, in order. */
export interface SessionAttachResult {
  session: Session;
  /** items of the newest 200 nodes, at most about 4 MiB; absent in a replay */
  items?: Item[];
  nextCursor?: string;
  /** items in progress, with their text so far */
  openItems?: Item[];
  /** open decisions, including those of subagents */
  decisions: Decision[];
  queue: QueuedInput[];
  tasks: Task[];
  /** the running turn */
  turnId?: TurnID;
  /** inputs that have entered the running turn and are not items yet */
  entered?: QueuedInput[];
  seq: Seq;
  /** of the newest model call in the history, which shows how full the context window is; absent: no call since the history was compacted, or a replay */
  context?: Usage;
  /** set if the events after afterSeq cannot be replayed; the result is a snapshot then */
  gap?: Gap;
}

/** SessionCompactParams compacts the history of a session. */
export interface SessionCompactParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  /** for the author of the summary */
  instructions?: string;
}

/** SessionCompactResult reports whether history was compacted. compacted is false if no plugin had anything to summarize. */
export interface SessionCompactResult {
  compacted: boolean;
  /** the plugin that wrote the summary */
  plugin?: string;
  head: Head;
  seq: Seq;
  duplicate?: boolean;
}

/** SessionConfigureParams changes settings from the next turn on. Absent settings stay unchanged. */
export interface SessionConfigureParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  model?: string;
  /** one of the model's reasoning efforts; absent: unchanged, or with model its own setting; "": the model's default */
  effort?: string;
  prompt?: string;
  budget?: Budget;
  approval?: ApprovalConfig;
  generation?: GenerationOptions;
  /** absent: replace */
  generationMode?: OverlayMode;
  options?: PluginOptions;
  unknownOutcome?: UnknownOutcomeRule;
  /** absent: unchanged */
  drain?: DrainPolicy;
}

/** SessionDiffParams selects the file changes of a session, a turn or a file point. */
export interface SessionDiffParams {
  sessionId: SessionID;
  turnId?: TurnID;
  pointId?: PointID;
  cursor?: string;
  /** number of files, 1 to 500; absent: 100 */
  limit?: number;
}

/** SessionDiffResult is a page of changed files, sorted by path. It shows the recorded changes, not the current files. */
export interface SessionDiffResult {
  data: FileDiff[];
  /** the file points that made the changes */
  points: FilePoint[];
  nextCursor?: string;
}

/** SessionExportParams selects a session and a format. The document ends at the leaf that the session had at the first request. */
export interface SessionExportParams {
  sessionId: SessionID;
  format: ExportFormat;
  /** with the model's reasoning in Markdown; JSON always has it */
  reasoning?: boolean;
  cursor?: string;
}

/** SessionExportResult is the next part of the document, at most 1 MiB. The document is all parts, one after the other. */
export interface SessionExportResult {
  text: string;
  nextCursor?: string;
}

/** SessionExtensionParams sends a message to the session's driver. */
export interface SessionExtensionParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  extension: unknown;
}

/** SessionForkParams creates a session that shares this session's history. */
export interface SessionForkParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  /** a node on the active branch or a pinned node; absent: the leaf */
  atNode?: NodeID;
  title?: string;
  toolCatalog?: ForkCatalog;
}

/** ses_... */
export type SessionID = string;

/** SessionImportParams is one part of a SessionDocument. Send the parts in order, starting at offset 0. With done, lashd checks the whole document and creates a session with its history before it responds. An invalid document creates nothing, and the error points to the place below /document. Until then lashd keeps the parts in memory only. It drops an unfinished upload after ten minutes without a new part, and when the daemon stops. */
export interface SessionImportParams {
  idempotencyKey?: string;
  /** chosen by the client */
  uploadId: string;
  offset?: number;
  /** the next part, at most 1 MiB; the whole has at most 64 MiB and 8,192 nodes */
  document: string;
  done?: boolean;
  /** with done: the workspace of the session: absolute path of a directory */
  cwd?: string;
  /** absent: that of the document or its first input */
  title?: string;
  /** a name from model/list; absent: the default */
  model?: string;
}

/** SessionImportResult reports the progress of an import and, with done, the new session. No client is attached to it. */
export interface SessionImportResult {
  received: number;
  session?: Session;
  /** files of the history whose contents lashd does not have; text takes their place */
  missing?: number;
  duplicate?: boolean;
}

/** SessionInputsParams selects inputs that people sent. */
export interface SessionInputsParams {
  /** only inputs of sessions in this directory */
  cwd?: string;
  cursor?: string;
  /** 1 to 500; absent: 100. A page holds at most about 1 MiB */
  limit?: number;
}

/** SessionInputsResult is a page of inputs, newest first. */
export interface SessionInputsResult {
  data: SentInput[];
  nextCursor?: string;
}

/** SessionListParams selects sessions. The result is sorted newest first. */
export interface SessionListParams {
  cwd?: string;
  archived?: boolean;
  /** include sessions of subagents */
  children?: boolean;
  cursor?: string;
  /** 1 to 200; absent: 50 */
  limit?: number;
}

/** SessionListResult is a page of sessions. */
export interface SessionListResult {
  data: Session[];
  nextCursor?: string;
}

/** SessionMatch is a title or a message that matches. A message that several sessions share is listed once. */
export interface SessionMatch {
  sessionId: SessionID;
  title?: string;
  cwd: string;
  /** of the session */
  updatedAtMs: number;
  /** user or assistant; absent: the title matches */
  role?: Role;
  /** the message */
  nodeId?: NodeID;
  /** the turn of the message */
  turnId?: TurnID;
  /** of the message */
  atMs?: number;
  /** a rewind has removed the message from the session's history */
  left?: boolean;
  /** the text around the match, in one line */
  snippet: string;
}

/** SessionMutationParams names a session to change. */
export interface SessionMutationParams {
  idempotencyKey?: string;
  sessionId: SessionID;
}

/** SessionNewParams creates a session, completely or not at all. Absent settings come from the session in start. If start is empty, they come from the parent session. Without a parent, they are the daemon's defaults or, for a plugin's request, the settings of the session that the plugin calls from. */
export interface SessionNewParams {
  idempotencyKey?: string;
  /** a new id chosen by the client; absent: lashd chooses */
  sessionId?: SessionID;
  /** the workspace: absolute path of a directory; absent: that of the session in start or of the parent */
  cwd?: string;
  title?: string;
  driver?: string;
  /** a name from model/list */
  model?: string;
  /** one of the model's reasoning efforts; absent: the model's own setting; "": the model's default */
  effort?: string;
  prompt?: string;
  budget?: Budget;
  approval?: ApprovalConfig;
  generation?: GenerationOptions;
  /** absent: replace */
  generationMode?: OverlayMode;
  options?: PluginOptions;
  unknownOutcome?: UnknownOutcomeRule;
  drain?: DrainPolicy;
  /** limits on what it may use; never wider than those of its parent or of the session in start */
  authority?: Authority;
  /** absent: empty */
  start?: SessionStart;
  /** absent: fork */
  pluginSource?: PluginSource;
  /** root, or child with its parent; absent: follows from authority */
  relation?: Relation;
  /** first nodes of its history, after the history from start */
  nodes?: NodeBody[];
  /** label of its usage in the parent's ledger; absent: child */
  usageLabel?: string;
  /** input for the first plugin that accepts it */
  firstTurnInput?: InputPart[];
  /** MCP servers of this client, as in session/setOverlay */
  mcpServers?: MCPServers;
}

/** SessionNewResult is the created session. The connection is attached to it. */
export interface SessionNewResult {
  sessionId: SessionID;
  session: Session;
  seq: Seq;
  duplicate?: boolean;
}

/** SessionOverlayParams replaces the overlay of a session. The newest overlay counts. An empty overlay does not remove the overlay of another client that is connected. */
export interface SessionOverlayParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  /** also offer the session's own tools; absent: true */
  includeBaseTools?: boolean;
  tools?: ClientTool[];
  prompt?: string;
  /** removed when the client disconnects; absent: none */
  mcpServers?: MCPServers;
  /** also remove the tools and the prompt 30 seconds after the client disconnects */
  whileConnected?: boolean;
}

/** SessionOverlayResult holds the tool settings after a change of the overlay. */
export interface SessionOverlayResult {
  tools: ToolState;
  seq: Seq;
  duplicate?: boolean;
}

/** SessionParams names a session. */
export interface SessionParams {
  sessionId: SessionID;
}

/** SessionPointsResult lists file points, oldest first. */
export interface SessionPointsResult {
  data: FilePoint[];
}

/** SessionReadParams selects a page of a session's items, going back from a cursor. */
export interface SessionReadParams {
  sessionId: SessionID;
  /** absent: start at the newest */
  cursor?: string;
  /** number of nodes, 1 to 500; absent: 200. A page holds at most about 4 MiB */
  limit?: number;
}

/** SessionReadResult is a page of items in order. nextCursor leads to older items. */
export interface SessionReadResult {
  session: Session;
  /** of the session's code cells, which never changes; absent: no turn has settled it */
  codeLanguage?: string;
  data: Item[];
  nextCursor?: string;
}

/** SessionRewindParams moves the leaf to an ancestor, restores files, or both. The abandoned branch stays, pinned. Files are restored to their state before the first abandoned turn. */
export interface SessionRewindParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  /** the new leaf */
  toNode?: NodeID;
  /** instead of toNode: rewind to before this turn */
  toTurn?: TurnID;
  /** instead of toNode, with files only: restore files to before this file point */
  toPoint?: PointID;
  /** absent: do not restore files */
  files?: RewindFiles;
  /** show what would change without doing it */
  dryRun?: boolean;
  /** overwrite conflicting files; files that cannot be restored stay unchanged */
  force?: boolean;
}

/** SessionRewindResult describes the abandoned branch and the changed files. */
export interface SessionRewindResult {
  head: Head;
  /** the leaf before the rewind, now pinned */
  pinned?: NodeID;
  /** number of abandoned nodes */
  nodes: number;
  seq: Seq;
  /** the file point of this undo; rewind to it to revert the undo; absent: no file changed */
  pointId?: PointID;
  /** the changed files */
  files?: FileRewind[];
  duplicate?: boolean;
}

/** SessionRule says whether an operation requires a session. */
export type SessionRule = "required" | "optional" | "forbidden";

/** SessionSearchParams looks for messages and titles by their words. A word stands for all words that begin with it. Text in double quotes is a phrase. A match has all of them. Case, accents and punctuation do not matter. */
export interface SessionSearchParams {
  query: string;
  /** only sessions in this directory */
  cwd?: string;
  /** search archived sessions instead of the others */
  archived?: boolean;
  /** also search sessions of subagents */
  children?: boolean;
  /** list each session once, with its first match */
  distinct?: boolean;
  cursor?: string;
  /** 1 to 100; absent: 20 */
  limit?: number;
}

/** SessionSearchResult is a page of matches: titles first, then messages, each newest first. A page can be shorter than the limit, even empty, although nextCursor leads to more. */
export interface SessionSearchResult {
  data: SessionMatch[];
  nextCursor?: string;
  /** about how many nodes lashd has not indexed yet, because it is still making the index; repeat the search for their matches */
  pending?: number;
}

/** SessionSetTitleParams sets the title of a session. */
export interface SessionSetTitleParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  title: string;
}

/** SessionStart says what history a new session starts with. */
export interface SessionStart {
  kind: StartKind;
  /** the existing session, or the owner of the snapshot */
  sessionId?: SessionID;
  /** name of the snapshot */
  snapshot?: string;
}

/** SessionState is the activity of a session. */
export type SessionState = "idle" | "running" | "requiresAction";

/** SessionWaitParams waits until no turn of a session is running or queued. */
export interface SessionWaitParams {
  sessionId: SessionID;
  /** absent: no limit */
  timeoutMs?: number;
}

/** SessionWaitResult is the state of the session at the end of the wait. */
export interface SessionWaitResult {
  state: SessionState;
  seq: Seq;
}

/** ShutdownParams says what to shut down. */
export interface ShutdownParams {
  /** also stop the daemon; running turns resume after its restart */
  daemon?: boolean;
}

/** SnapshotInfo describes a snapshot: a node of history with the state of plugins and tools at that time. */
export interface SnapshotInfo {
  name: string;
  /** the leaf at that time; it stays reachable */
  nodeId: NodeID;
  atMs: number;
  /** number of nodes from the root to nodeId */
  nodes: number;
  /** size of the state of plugins, tools and monitors; not set by snapshot/create */
  bytes?: number;
}

/** SnapshotListResult lists the snapshots of a session, sorted by name. */
export interface SnapshotListResult {
  data: SnapshotInfo[];
}

/** SnapshotMutationParams names a snapshot to create, restore or delete. */
export interface SnapshotMutationParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  name: string;
}

/** SnapshotParams names a snapshot of a session. */
export interface SnapshotParams {
  sessionId: SessionID;
  name: string;
}

/** SnapshotPreviewResult shows what restoring a snapshot would change. */
export interface SnapshotPreviewResult {
  snapshot: SnapshotInfo;
  /** the session as it is */
  now: SnapshotSide;
  /** the session after a restore */
  then: SnapshotSide;
}

/** SnapshotReadResult holds the contents of a snapshot. */
export interface SnapshotReadResult {
  snapshot: SnapshotInfo;
  /** sorted by plugin */
  plugins: PluginState[];
  /** of the set of plugins at that time */
  fingerprint: string;
  /** absent: all settings were at their defaults */
  tools?: ToolState;
}

/** SnapshotRestoreResult is the session's new head. */
export interface SnapshotRestoreResult {
  head: Head;
  /** the leaf before the restore, now pinned */
  pinned?: NodeID;
  seq: Seq;
  duplicate?: boolean;
}

/** SnapshotResult is a created snapshot. */
export interface SnapshotResult {
  snapshot: SnapshotInfo;
  seq: Seq;
  duplicate?: boolean;
}

/** SnapshotSide is the state of a session before or after a restore. */
export interface SnapshotSide {
  /** its leaf */
  nodeId: NodeID;
  /** number of nodes that the other side does not have */
  nodes: number;
  /** items of these nodes; at most the newest 100 nodes */
  items: Item[];
  /** sorted by plugin */
  plugins: PluginState[];
  /** tool settings */
  tools: ToolState;
  /** a restore stops running monitors */
  monitors: Monitor[];
  /** of the code executor's state */
  execution?: Digest;
}

/** StartKind is the kind of a SessionStart. */
export type StartKind = "empty" | "currentSession" | "existingSession" | "snapshot";

/** StatusResult is the state of the daemon. */
export interface StatusResult {
  version: string;
  pid: number;
  uptimeMs: number;
  dataDir: string;
  socket?: string;
  /** stored sessions */
  sessions: number;
  /** sessions in memory */
  loadedSessions: number;
  runningTurns: number;
  openDecisions: number;
  connections: number;
  /** by name */
  drivers: DriverInfo[];
  /** ok, or a description of the problem, such as lost commits; lash doctor helps with these */
  store: string;
}

/** StopReason says why a model stopped. */
export type StopReason = "stop" | "toolUse" | "outputLimit" | "contextOverflow" | "contentFilter" | "providerError" | "cancelled" | "unknown";

/** StoredKey says where lashd stored a key or a login. */
export interface StoredKey {
  /** absent: in the system's keyring */
  file?: string;
  /** why the keyring did not take it */
  keyringProblem?: string;
  /** environment variables whose key lashd uses before the stored one */
  usedFirst?: string[];
  /** the daemon uses the change after its restart */
  restart?: boolean;
}

/** Subagent describes a session that works for another session. Depth counts the sessions above it; a person's session has depth 0. */
export interface Subagent {
  parentSessionId: SessionID;
  capability?: string;
  depth: number;
  maxDepth: number;
}

/** Task is work that outlives a turn. Its state is the result of its events. */
export interface Task {
  taskId: TaskID;
  sessionId: SessionID;
  spec: TaskSpec;
  origin: TaskOrigin;
  /** other sessions that may see it, besides its own and its origin's */
  observers?: SessionID[];
  state: TaskState;
  /** while idle: what it is waiting for */
  waiting?: string;
  /** number of the current attempt, from 1; 0: not started yet */
  attempt: number;
  incarnation?: string;
  /** of an external task: its id in the other system */
  ref?: string;
  cancelRequested?: TaskRequest;
  abandonRequested?: TaskRequest;
  /** the turn or task that started it has ended */
  callerDeparted?: boolean;
  /** set in a final state */
  outcome?: TaskOutcome;
  /** of its newest event */
  ordinal: number;
  /** increases with every change of any task; usable as a cursor of task/list */
  change?: number;
  /** its spec, events and output were deleted by task/prune */
  pruned?: boolean;
  /** of the spec of a pruned task */
  fingerprint?: string;
  createdAtMs: number;
  startedAtMs?: number;
  updatedAtMs: number;
  endedAtMs?: number;
}

/** TaskAdmission counts the running tasks of the daemon and the tasks that wait for a free place. */
export interface TaskAdmission {
  /** running tasks */
  working: number;
  /** maximum number of running tasks */
  limit: number;
  /** tasks waiting for a free place */
  waiting: number;
}

/** TaskCancelAllParams requests that all tasks of a session end. */
export interface TaskCancelAllParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  /** absent: all kinds */
  kind?: TaskKind;
  /** tasks that continue */
  keep?: TaskID[];
  reason?: string;
}

/** TaskCancelParams requests that a task ends. The task may still complete. */
export interface TaskCancelParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  taskId: TaskID;
  reason?: string;
}

/** TaskCancelPolicy says how a task is cancelled. */
export type TaskCancelPolicy = "abortLocal" | "cooperative" | "external";

/** TaskChild is the turn of a child session that does the work of a task. Every attempt of the task uses the same turn. */
export interface TaskChild {
  /** the child session */
  sessionId: SessionID;
  /** a new turn id */
  turnId: TurnID;
  /** path of the agent's name, such as /root/tests */
  agent?: string;
  input?: InputPart[];
  /** how to create the child; absent: it exists already */
  new?: SessionNewParams;
  /** a task of the same session that must end before the turn begins */
  after?: TaskID;
  /** JSON Schema of the turn's result; absent: anything. lashd asks the model once more if the result does not match */
  outputSchema?: unknown;
}

/** TaskClosePolicy says what happens to a task when its session is closed. */
export type TaskClosePolicy = "keep" | "cancel" | "transfer";

/** TaskCompleteParams reports the outcome of a task that runs outside lashd, or abandons a lost task. */
export interface TaskCompleteParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  taskId: TaskID;
  outcome: TaskOutcome;
}

/** TaskEnd says how a task ended. */
export type TaskEnd = "exited" | "signaled" | "stopped" | "completed" | "failed" | "abandoned";

/** TaskEvent is a change of a task. The events of a task, in order, determine its state. */
export interface TaskEvent {
  /** 1, 2, 3, ... in its task */
  ordinal: number;
  atMs: number;
  kind: TaskEventKind;
  /** of created and transferred: the owner from then on; of observer events: the observer */
  sessionId?: SessionID;
  spec?: TaskSpec;
  origin?: TaskOrigin;
  /** of started */
  incarnation?: string;
  /** of waiting and of requests */
  reason?: string;
  by?: string;
  ref?: string;
  /** of a custom event */
  name?: string;
  payload?: unknown;
  /** of a custom event: reporting it again with the same key has no effect */
  key?: string;
  outcome?: TaskOutcome;
}

/** TaskEventKind is the kind of a task event. */
export type TaskEventKind = "created" | "started" | "waiting" | "resumed" | "externalRef" | "cancelRequested" | "abandonRequested" | "callerDeparted" | "observerAdded" | "observerRemoved" | "transferred" | "event" | "ended";

/** TaskEventType is a custom event that a task may report. */
export interface TaskEventType {
  name: string;
  /** JSON Schema of its payload; absent: anything */
  schema?: unknown;
  /** set if the event wakes the session */
  wake?: TaskWake;
}

/** TaskEvidence says why a task is abandoned. */
export interface TaskEvidence {
  writer: TaskWriter;
  /** of the daemon that ran it */
  incarnation?: string;
  attempts: number;
  reason: string;
}

/** tsk_..., or chosen by the starter */
export type TaskID = string;

/** TaskKind is the kind of work of a task. */
export type TaskKind = "command" | "monitor" | "subagent" | "observer" | "other";

/** TaskListParams selects tasks. The result is sorted by time of the last change. */
export interface TaskListParams {
  /** tasks that this session may see; absent: all tasks */
  sessionId?: SessionID;
  kind?: TaskKind;
  /** only tasks that have not ended */
  live?: boolean;
  /** include hidden tasks */
  hidden?: boolean;
  /** from an earlier result: only tasks that changed since */
  cursor?: string;
  /** 1 to 1000; absent: 100 */
  limit?: number;
}

/** TaskListResult is a page of tasks. nextCursor is always set; a later request with it returns the tasks that changed since. */
export interface TaskListResult {
  data: Task[];
  nextCursor: string;
  /** more tasks are available now */
  more?: boolean;
  admission: TaskAdmission;
}

/** TaskLosers says what happens to tasks that have not ended when a wait ends. */
export type TaskLosers = "keep" | "cancel";

/** TaskObserveParams lets another session see a task, or with remove, stops that. */
export interface TaskObserveParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  taskId: TaskID;
  observer: SessionID;
  remove?: boolean;
}

/** TaskOrigin says what started a task. */
export interface TaskOrigin {
  sessionId: SessionID;
  turnId?: TurnID;
  callId?: CallID;
  plugin?: string;
  clientId?: ClientID;
  /** limits of what the task may start, in addition to the limits of its session; absent: only the session's limits */
  ceiling?: Ceiling;
}

/** TaskOutcome says how a task ended. */
export interface TaskOutcome {
  kind: TaskEnd;
  exitCode?: number;
  /** such as SIGKILL */
  signal?: string;
  /** a client id or internal:<subject> */
  by?: string;
  value?: unknown;
  code?: string;
  message?: string;
  evidence?: TaskEvidence;
  /** the sandbox seems to have refused something to the command */
  refusal?: SandboxRefusal;
}

/** TaskOutputParams selects a range of a task's output. */
export interface TaskOutputParams {
  sessionId: SessionID;
  taskId: TaskID;
  /** in bytes; negative: counted from the end */
  offset?: number;
  /** in bytes, at most 1 MiB; absent: 64 KiB */
  limit?: number;
}

/** TaskOutputResult is a range of an output. Invalid UTF-8 is replaced. A character that is incomplete at the end of the range comes with the next range. */
export interface TaskOutputResult {
  text: string;
  /** of the first byte of text */
  offset: number;
  nextOffset: number;
  /** current size of the whole output */
  size: number;
  /** the output reached its size limit; later output was dropped */
  full?: boolean;
  /** the task has ended; its output is final */
  ended: boolean;
}

/** TaskParentEnd says what happens to a task when the task or turn that started it ends. */
export type TaskParentEnd = "detach" | "cancel";

/** TaskPruneParams deletes the stored data of up to 1000 ended tasks. The result holds what remains of each. */
export interface TaskPruneParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  /** only tasks that ended before this time; absent: all ended tasks */
  beforeAtMs?: number;
}

/** TaskReadParams selects a task and a page of its events. */
export interface TaskReadParams {
  sessionId: SessionID;
  taskId: TaskID;
  /** only events after this ordinal */
  after?: number;
  /** 1 to 1000; absent: 100 */
  limit?: number;
}

/** TaskReadResult is a task and a page of its events, oldest first. */
export interface TaskReadResult {
  task: Task;
  events: TaskEvent[];
}

/** TaskRecovery says what happens to a running task when the daemon stops. It is set when the task is created. */
export type TaskRecovery = "rerunnable" | "ownerBound" | "external";

/** TaskRequest is a request to cancel or abandon a task. */
export interface TaskRequest {
  /** a client id or internal:<subject> */
  by: string;
  reason?: string;
  atMs: number;
}

/** TaskResult is a task after a change. */
export interface TaskResult {
  task: Task;
  /** a task with this id and spec existed already */
  existing?: boolean;
  seq: Seq;
  duplicate?: boolean;
}

/** TaskRule says when a wait for several tasks ends. */
export type TaskRule = "all" | "first" | "firstSuccess";

/** TaskShell is a shell command. */
export interface TaskShell {
  script: string;
  /** absolute path; absent: the session's directory */
  workdir?: string;
  env?: Record<string, string>;
  /** absent: the command runs outside a sandbox */
  sandbox?: SandboxMode;
  /** hosts that the command reaches from its sandbox; absent: none */
  network?: NetworkAccess;
  /** run it in a terminal of this size */
  pty?: TaskTerminal;
  /** for recovery external: the command keeps running when lashd stops; lashd still detects its end and can stop it */
  detach?: boolean;
}

/** TaskSignalParams sends a task a signal that the task declares. */
export interface TaskSignalParams {
  sessionId: SessionID;
  taskId: TaskID;
  /** for a command: stdin {text}, closeStdin or interrupt; with a terminal also resize {columns, rows} */
  name: string;
  payload?: unknown;
}

/** TaskSignalType is a signal that a task accepts. */
export interface TaskSignalType {
  name: string;
  schema?: unknown;
}

/** TaskSpec describes the work of a task. It never changes. Starting a task with a known id and a different spec is a conflict. */
export interface TaskSpec {
  kind: TaskKind;
  /** for display */
  label?: string;
  recovery: TaskRecovery;
  /** of a rerunnable task; 0: three */
  maxAttempts?: number;
  /** absent: abortLocal */
  cancel?: TaskCancelPolicy;
  /** absent: keep */
  close?: TaskClosePolicy;
  /** absent: detach */
  parentEnd?: TaskParentEnd;
  /** the task that this one is a part of */
  parent?: TaskID;
  /** not listed by default, and without events */
  hidden?: boolean;
  /** time limit of each attempt; 0: no limit */
  timeoutMs?: number;
  /** for the kinds command and monitor */
  command?: TaskShell;
  /** for the kind subagent */
  subagent?: TaskChild;
  /** the plugin that does the work */
  plugin?: string;
  /** the plugin's handler that runs it */
  handler?: string;
  /** for the handler or program that runs it */
  payload?: unknown;
  /** custom events that it may report */
  events?: TaskEventType[];
  /** signals that it accepts */
  signals?: TaskSignalType[];
  /** set if its end wakes its session */
  ended?: TaskWake;
}

/** TaskStartParams starts a task in a session. */
export interface TaskStartParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  /** absent: lashd chooses an id. A known id with the same spec returns the existing task */
  taskId?: TaskID;
  spec: TaskSpec;
}

/** TaskState is the state of a task. The last four are final. */
export type TaskState = "pending" | "running" | "idle" | "cancelRequested" | "completed" | "failed" | "cancelled" | "abandoned";

/** TaskTerminal is the size of a terminal, in characters. */
export interface TaskTerminal {
  columns: number;
  rows: number;
}

/** TaskTransferParams moves tasks to another session, all or none. */
export interface TaskTransferParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  taskIds: TaskID[];
  to: SessionID;
}

/** TaskWaitParams waits for tasks. */
export interface TaskWaitParams {
  sessionId: SessionID;
  taskIds: TaskID[];
  rule?: TaskRule;
  losers?: TaskLosers;
  /** absent: no limit. A timeout does not affect the tasks */
  timeoutMs?: number;
}

/** TaskWaitResult is the state of the tasks at the end of the wait. */
export interface TaskWaitResult {
  /** ended tasks, in the order in which they ended */
  settled: Task[];
  /** tasks that have not ended */
  live: Task[];
  timedOut?: boolean;
}

/** TaskWake says how an event wakes its session. */
export interface TaskWake {
  /** absent: afterTurn */
  delivery?: Delivery;
  /** queued wakes with the same key share a turn */
  merge?: string;
  /** text for the model; absent: the event itself */
  text?: string;
}

/** TaskWriter says what marked a task as abandoned. */
export type TaskWriter = "ownerDrain" | "sweep" | "reconciledRequest" | "gaveUp";

/** TasksResult holds the tasks after a change. */
export interface TasksResult {
  data: Task[];
  seq: Seq;
  duplicate?: boolean;
}

/** ToolActivation says whether the model may call a tool. */
export type ToolActivation = "always" | "direct" | "internal";

/** ToolApplyStateParams replaces all tool settings. It fails if state.generation is not current. Tools that the state omits disappear until the next tool/refresh. To remove a tool permanently, include it with member set to false. */
export interface ToolApplyStateParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  state: ToolState;
}

/** ToolAvailability says how a tool is offered to the model. Each level includes the ones before it. */
export type ToolAvailability = "off" | "searchable" | "callable" | "showcased";

/** ToolCall is a request to run a tool. */
export interface ToolCall {
  callId: CallID;
  name: string;
  /** the tool's name for people, if it had one at the time of the call */
  toolTitle?: string;
  args: unknown;
  /** the call that made this one; absent: the model made it */
  parent?: CallID;
}

/** ToolCallParams runs a tool without a model. The session's approval rules apply. */
export interface ToolCallParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  name: string;
  args?: unknown;
  /** the model reads the call and its output at its next step */
  tell?: boolean;
}

/** ToolCallRecord is one tool call of a turn, from start to result. */
export interface ToolCallRecord {
  callId: CallID;
  name: string;
  args: unknown;
  output: ToolOutput;
  durationMs: number;
  /** the call or the code cell that made this call; absent: the model made it */
  parent?: CallID;
  /** position in the order of completion within its batch */
  order: number;
}

/** ToolCallResult is the result of a tool call. */
export interface ToolCallResult {
  callId: CallID;
  output: ToolOutput;
  durationMs: number;
  duplicate?: boolean;
}

/** ToolCompleteParams completes a pending tool call. The tool received the key. */
export interface ToolCompleteParams {
  idempotencyKey?: string;
  key: CompletionKey;
  output: ToolOutput;
}

/** ToolCompleteResult reports whether lashd accepted the completion. It accepts the first one while the call is pending. */
export interface ToolCompleteResult {
  accepted: boolean;
  seq: Seq;
  duplicate?: boolean;
}

/** ToolContract says how lashd may run a tool. */
export interface ToolContract {
  replay: Replay;
  /** never in parallel with other calls of its batch */
  serial?: boolean;
  /** 0: no limit of its own */
  timeoutMs?: number;
  /** for failures marked safe to retry; requires a replay other than never */
  retry?: ToolRetry;
  /** may return a pending result */
  mayDefer?: boolean;
  /** arguments that allowSession and allowAlways ignore, such as the contents of a file; absent: none */
  varying?: string[];
  /** JSON Schema of the arguments; absent: the manifest's, or any object */
  input?: unknown;
  /** JSON Schema of the result's value; absent: unknown */
  output?: unknown;
  /** example arguments */
  examples?: unknown[];
}

/** ToolFailure says why a tool call failed. */
export interface ToolFailure {
  class: FailureClass;
  code: string;
  message: string;
  source: FailureSource;
  /** a retry is safe and may succeed */
  retry?: boolean;
  /** minimum delay before a retry */
  retryAfterMs?: number;
  raw?: unknown;
}

/** ToolKind groups tools for display, with the names of the Agent Client Protocol. */
export type ToolKind = "read" | "edit" | "delete" | "move" | "search" | "execute" | "think" | "fetch" | "other";

/** ToolListResult lists every tool of the session, whether or not the model sees it. */
export interface ToolListResult {
  data: ToolRecord[];
  generation: number;
}

/** ToolManifest describes a tool. The model sees its name, description and input schema. */
export interface ToolManifest {
  /** permanent id; absent: its name */
  id?: string;
  /** name for the model; unique in a session */
  name: string;
  /** name for people */
  title?: string;
  description: string;
  /** JSON Schema of the arguments; absent: any object */
  input?: unknown;
  /** for display */
  kind?: ToolKind;
  /** absent: always */
  activation?: ToolActivation;
  /** name of a similar tool; ask and deny rules for that tool also apply to this one */
  like?: string;
  /** the tool's form in other environments, such as a programming language */
  bindings?: Record<string, unknown>;
}

/** ToolOutput is the output of a tool call. */
export interface ToolOutput {
  status: OutputStatus;
  /** text for the model */
  text?: string;
  /** structured result for clients and code */
  value?: unknown;
  failure?: ToolFailure;
  /** the full output, if text is only part of it */
  artifact?: ArtifactRef;
  /** file change of the call */
  change?: FileChange;
  /** all retries were used */
  exhausted?: boolean;
  /** the sandbox seems to have refused something */
  refusal?: SandboxRefusal;
  /** outcomes of the call's intents; set by lashd */
  intents?: IntentOutcome[];
  /** files for the model, with the checks and limits of an input */
  attachments?: Attachment[];
}

/** ToolRecord is a tool of a session with its settings. */
export interface ToolRecord {
  id?: string;
  name: string;
  title?: string;
  description: string;
  input?: unknown;
  kind?: ToolKind;
  activation?: ToolActivation;
  like?: string;
  bindings?: Record<string, unknown>;
  /** the plugin or client that provides it; empty: no provider */
  source: string;
  contract: ToolContract;
  /** changes with manifest and contract */
  revision: Digest;
  estimatedTokens: number;
  /** in the model's catalog */
  member: boolean;
  /** it has no provider any more; its settings are kept */
  orphan: boolean;
  /** described in the prompt */
  document: boolean;
  availability: ToolAvailability;
}

/** ToolRespondParams is a client's response to tool/requested. With ack, the client reports that it has begun. If the client then disappears, the call has an unknown outcome instead of a failure. */
export interface ToolRespondParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  callId: CallID;
  ack?: boolean;
  output?: ToolOutput;
}

/** ToolRespondResult reports whether lashd accepted the response. */
export interface ToolRespondResult {
  accepted: boolean;
  duplicate?: boolean;
}

/** ToolResult is the result of a tool call in the conversation. */
export interface ToolResult {
  callId: CallID;
  name: string;
  output: ToolOutput;
  durationMs?: number;
  /** position in the order of completion within its batch */
  order: number;
}

/** ToolRetry sets how often lashd tries a call. The delay between attempts doubles from baseMs to capMs. */
export interface ToolRetry {
  /** including the first attempt */
  maxAttempts: number;
  baseMs: number;
  capMs: number;
}

/** ToolSetAvailabilityParams sets how tools are offered to the model. An absent availability removes an earlier setting. */
export interface ToolSetAvailabilityParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  /** expected current generation; absent: any */
  generation?: number;
  names: string[];
  availability?: ToolAvailability;
}

/** ToolSetMembershipParams adds tools to the model's catalog (true) or removes them (false). */
export interface ToolSetMembershipParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  /** expected current generation; absent: any */
  generation?: number;
  members: Record<string, boolean>;
}

/** ToolSetting holds the settings of one tool in a session. They belong to the tool's id; another provider of the same id gets the same settings. */
export interface ToolSetting {
  /** last known manifest, without the schema */
  manifest: ToolManifest;
  /** it has no provider any more */
  orphaned?: boolean;
  /** in the model's catalog; absent: true */
  member?: boolean;
  /** set by tool/setAvailability */
  override?: ToolAvailability;
}

/** ToolState holds the tool settings of a session. Generation increases with each change. A change with an older generation fails. */
export interface ToolState {
  generation: number;
  /** by tool id */
  tools: Record<string, ToolSetting>;
}

/** ToolStateResult holds the tool settings of a session. */
export interface ToolStateResult {
  state: ToolState;
  seq: Seq;
  duplicate?: boolean;
}

/** Trigger is a rule that wakes or starts a session when an event happens. */
export interface Trigger {
  triggerId: TriggerID;
  key: string;
  /** the owner, with which it is deleted; absent: the user */
  sessionId?: SessionID;
  /** increases with each update */
  revision: number;
  enabled: boolean;
  /** why it does not work, or not fully */
  problem?: string;
  createdAtMs: number;
  updatedAtMs: number;
  /** next time of its schedule */
  nextAtMs?: number;
  source: TriggerSource;
  filter?: unknown;
  action: TriggerAction;
}

/** TriggerAction is the action of a trigger. The model receives the text and the event. */
export interface TriggerAction {
  kind: TriggerActionKind;
  text: string;
  /** for wakeSession; absent: the owner */
  sessionId?: SessionID;
  /** for wakeSession: when the model receives it; absent: afterTurn */
  delivery?: Delivery;
  /** for wakeSession: wakes with the same key may share a turn; absent: wakes of the same trigger may */
  merge?: string;
  /** for newSession */
  session?: TriggerSession;
}

/** TriggerActionKind says what a trigger does. */
export type TriggerActionKind = "wakeSession" | "newSession";

/** TriggerDeleteParams deletes a trigger. Earlier events are still delivered. */
export interface TriggerDeleteParams {
  idempotencyKey?: string;
  key: string;
  sessionId?: SessionID;
  /** fail if the key now belongs to a trigger with another id */
  triggerId?: TriggerID;
  /** fail if the trigger was updated since */
  revision?: number;
}

/** TriggerDelivery is the delivery of an event for one trigger. */
export interface TriggerDelivery {
  triggerId: TriggerID;
  key: string;
  state: DeliveryState;
  /** the session that is woken or started */
  sessionId: SessionID;
  turnId?: TurnID;
  reason?: string;
  /** time of the last change of state */
  atMs: number;
}

/** TriggerEmitParams emits an event for triggers. */
export interface TriggerEmitParams {
  idempotencyKey?: string;
  /** a type from trigger/types */
  type: string;
  /** workspace whose plugins declare the type; absent: no workspace plugins */
  cwd?: string;
  /** the source of the event, such as a mailbox */
  sourceKey?: string;
  /** identifies the event, such as the id of a mail; emitting the same key again has no effect. Absent: a new event */
  occurrenceKey?: string;
  /** an object that matches the type's schema; absent: an empty object */
  payload?: unknown;
}

/** TriggerEmitResult is the stored event with its planned deliveries. trigger/history reports their progress. */
export interface TriggerEmitResult {
  occurrence: Occurrence;
  duplicate?: boolean;
}

/** TriggerHistoryParams selects emitted events. The result is sorted newest first. */
export interface TriggerHistoryParams {
  /** only events for this trigger; absent: all */
  triggerId?: TriggerID;
  /** absent: all */
  type?: string;
  cursor?: string;
  /** 1 to 100; absent: 20 */
  limit?: number;
}

/** TriggerHistoryResult is a page of emitted events. lashd keeps at least the newest 10,000 events of each type. */
export interface TriggerHistoryResult {
  data: Occurrence[];
  nextCursor?: string;
}

/** trg_...; a trigger that is deleted and created again gets a new id */
export type TriggerID = string;

/** TriggerListParams selects triggers. The result is sorted by creation, oldest first. */
export interface TriggerListParams {
  /** the owner; absent: all triggers */
  sessionId?: SessionID;
  cursor?: string;
  /** 1 to 200; absent: 50 */
  limit?: number;
}

/** TriggerListResult is a page of triggers. */
export interface TriggerListResult {
  data: Trigger[];
  nextCursor?: string;
}

/** TriggerRegisterParams creates a trigger. */
export interface TriggerRegisterParams {
  idempotencyKey?: string;
  /** unique per owner */
  key: string;
  /** the owner; absent: the user */
  sessionId?: SessionID;
  /** absent: true */
  enabled?: boolean;
  source: TriggerSource;
  filter?: unknown;
  action: TriggerAction;
}

/** TriggerResult is the trigger after the change, or before its deletion. */
export interface TriggerResult {
  trigger: Trigger;
  duplicate?: boolean;
}

/** TriggerSession holds the settings of a session that a trigger starts. Absent settings are the daemon's defaults. */
export interface TriggerSession {
  /** absolute path of a directory */
  cwd: string;
  title?: string;
  driver?: string;
  model?: string;
  /** reasoning effort, as in session/new */
  effort?: string;
  prompt?: string;
  budget?: Budget;
  approval?: ApprovalConfig;
  options?: PluginOptions;
}

/** TriggerSource says which events fire a trigger. */
export interface TriggerSource {
  /** a type from trigger/types */
  type: string;
  /** a source of that type, such as a mailbox; absent: any source */
  key?: string;
  /** for cron.tick */
  cron?: CronSource;
  /** for file.changed */
  file?: FileSource;
}

/** TriggerType is a type of event that triggers can wait for, declared by a plugin or by lashd. */
export interface TriggerType {
  /** such as mail.new */
  type: string;
  resourceType: string;
  description?: string;
  /** JSON Schema of the payload; absent: any object */
  payload?: unknown;
  /** only lashd emits it; trigger/emit rejects it */
  watched?: boolean;
}

/** TriggerTypesParams selects the event types that triggers can wait for. */
export interface TriggerTypesParams {
  /** include the plugins of this workspace; absent: no workspace plugins */
  cwd?: string;
}

/** TriggerTypesResult lists event types, sorted by name. */
export interface TriggerTypesResult {
  data: TriggerType[];
}

/** TriggerUpdateParams changes a trigger. Absent members stay unchanged. Earlier times of its schedule no longer count as missed. */
export interface TriggerUpdateParams {
  idempotencyKey?: string;
  key: string;
  sessionId?: SessionID;
  /** fail if the key now belongs to a trigger with another id */
  triggerId?: TriggerID;
  /** fail if the trigger was updated since */
  revision?: number;
  enabled?: boolean;
  source?: TriggerSource;
  /** {} removes the filter */
  filter?: unknown;
  action?: TriggerAction;
}

/** TurnCause is the cause of a wake. The model sees each cause once. */
export interface TurnCause {
  /** unique in the session */
  id: string;
  /** such as monitor/line, task/completed or trigger */
  type: string;
  /** id of the task or trigger that caused it */
  origin?: string;
  /** text for the model; absent if an input next to it holds the text */
  text?: string;
}

/** trn_... */
export type TurnID = string;

/** TurnInputInfo describes the input that a plugin accepts with a turn. */
export interface TurnInputInfo {
  plugin: string;
  /** absent: any JSON */
  schema?: unknown;
  required?: boolean;
}

/** TurnInterruptParams stops a turn. */
export interface TurnInterruptParams {
  idempotencyKey?: string;
  turnId: TurnID;
  reason?: string;
}

/** TurnInterruptResult confirms that the request is stored, or that the turn had already ended. */
export interface TurnInterruptResult {
  status: InterruptStatus;
  seq: Seq;
  duplicate?: boolean;
}

/** TurnListParams lists the turns of a session, newest first. */
export interface TurnListParams {
  sessionId: SessionID;
  cursor?: string;
  /** 1 to 200; absent: 50 */
  limit?: number;
}

/** TurnListResult is a page of turns. */
export interface TurnListResult {
  data: TurnReport[];
  nextCursor?: string;
}

/** TurnOptions are options for the session's driver. Only the driver understands the payload. */
export interface TurnOptions {
  /** version of the payload's format, starting at 1 */
  schemaVersion: number;
  /** at most 64 KiB */
  payload: unknown;
}

/** TurnOutcome says how a turn ended. OutcomeKind lists the fields of each kind. */
export interface TurnOutcome {
  kind: OutcomeKind;
  text?: string;
  value?: unknown;
  tool?: string;
  frame?: FrameSwitch;
  cancel?: CancelEvidence;
}

/** TurnParams names a turn. */
export interface TurnParams {
  turnId: TurnID;
}

/** TurnReport describes a turn and its results. All clients receive the same report. */
export interface TurnReport {
  turnId: TurnID;
  sessionId: SessionID;
  state: TurnState;
  /** set when the turn has ended */
  outcome?: TurnOutcome;
  output?: AssistantOutput;
  usage: Usage;
  childrenUsage?: UsageRow[];
  calls?: CallRecord[];
  toolCalls?: ToolCallRecord[];
  issues?: Issue[];
  hadToolCalls?: boolean;
  hadCodeExecution?: boolean;
  acceptedAtMs: number;
  startedAtMs?: number;
  /** from the start to the final commit */
  durationMs?: number;
  headRevision?: number;
  /** the turn that continues in another frame */
  followedBy?: TurnID;
}

/** TurnStartParams sends an input to a session. */
export interface TurnStartParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  input: InputPart[];
  /** for the turn that starts with this input */
  pluginInputs?: PluginInputs;
  /** slash command of command/list, for the turn that starts with this input, which is the line that the person wrote */
  command?: CommandCall;
  /** Resources of MCP servers, at most 16, for the turn that starts with this input. lashd reads them when the turn starts; if a server fails, the turn ends before the model is asked. */
  resources?: ResourceMention[];
  whenBusy?: WhenBusy;
  /** For the session's driver. They replace its recorded options, for this turn and later ones. */
  turnOptions?: TurnOptions;
  /** reasoning effort of the turn that starts with this input; absent: the session's */
  effort?: string;
  /** Maximum number of model calls of the turn that starts with this input, if that is less than the session's budget. */
  iterations?: number;
  /** JSON Schema, at most 64 KiB. The turn that starts with this input ends with a value that matches it, or fails. */
  schema?: unknown;
}

/** TurnStartResult confirms that the input is stored. seq is the sequence number of its turn/accepted event. */
export interface TurnStartResult {
  turnId: TurnID;
  inputId: InputID;
  state: TurnState;
  seq: Seq;
  duplicate?: boolean;
}

/** TurnState is the state of a turn. */
export type TurnState = "queued" | "running" | "waiting" | "completed" | "cancelled" | "failed";

/** TurnSteerParams sends an input to a running turn. */
export interface TurnSteerParams {
  idempotencyKey?: string;
  turnId: TurnID;
  input: InputPart[];
  /** the earliest checkpoint; absent: afterWork */
  boundary?: Boundary;
}

/** TurnSteerResult confirms that the input is stored. If the turn ends first, the next turn uses the input. */
export interface TurnSteerResult {
  inputId: InputID;
  seq: Seq;
  duplicate?: boolean;
}

/** TurnTraceParams selects a page of a turn's events. */
export interface TurnTraceParams {
  turnId: TurnID;
  cursor?: string;
  /** 1 to 500; absent: 200 */
  limit?: number;
}

/** TurnTraceResult is a page of the durable events of a turn, in order: inputs, model calls with tokens and attempts, tool calls, decisions, and its end. */
export interface TurnTraceResult {
  turn: TurnReport;
  data: Event[];
  nextCursor?: string;
}

/** TurnWaitParams waits for the end of a turn. Any number of clients may wait. */
export interface TurnWaitParams {
  turnId: TurnID;
  /** absent: no limit. A timeout returns the report of the unfinished turn */
  timeoutMs?: number;
  /** also wait for turns that continue this turn in another frame, and return the last report */
  follow?: boolean;
}

/** UnknownOutcomeRule sets how long lashd asks a person about a tool call of unknown outcome. After that, lashd reports the unknown outcome to the model. */
export interface UnknownOutcomeRule {
  /** absent: ten minutes; 0: report to the model at once */
  deadlineMs?: number;
}

/** UnsavedGlobal is a global variable that is not stored with the session. It is lost when the session is unloaded. */
export interface UnsavedGlobal {
  name: string;
  reason: string;
}

/** Usage counts tokens. reasoning is a part of output; the other counts do not overlap. cost covers the calls whose model had a price in the configuration at that time. */
export interface Usage {
  /** input tokens without cached ones */
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  reasoning: number;
  /** in billionths of a US dollar */
  cost?: number;
}

/** UsageReadParams selects a usage ledger. The ledger of a session includes its subagents under their labels. Without a session, the result covers all sessions and counts each call once. */
export interface UsageReadParams {
  sessionId?: SessionID;
}

/** UsageReadResult is token usage by source and model. */
export interface UsageReadResult {
  data: UsageRow[];
  total: Usage;
}

/** UsageRow is the usage of one source and model in a session's ledger. */
export interface UsageRow {
  /** turn, or the label of a completion or a subagent */
  source: string;
  model: string;
  usage: Usage;
  calls: number;
  /** number of calls whose usage is unknown */
  unknown?: number;
}

/** WakeRefusal says why a wake was not delivered. */
export type WakeRefusal = "duplicate" | "targetGone" | "expired" | "sequenceRewound" | "tooLarge";

/** WhenBusy says what to do with an input while a turn is running. */
export type WhenBusy = "queue" | "refuse" | "steer";

/** The params and the result of every method. */
export interface Methods {
  /** Calls an operation of any kind. */
  "action/invoke": { params: OperationParams; result: OperationReceipt };
  /** Reads a range of an artifact by its digest. */
  "artifact/read": { params: ArtifactReadParams; result: ArtifactReadResult };
  /** Uploads an artifact in parts. The last part stores it. */
  "artifact/write": { params: ArtifactWriteParams; result: ArtifactWriteResult };
  /** Lists, in order, who decided over the tool calls of a session, and what ran outside a sandbox or was refused. */
  "audit/list": { params: AuditListParams; result: AuditListResult };
  /** Checks that the log of a session is complete and unchanged. */
  "audit/verify": { params: SessionParams; result: AuditVerifyResult };
  /** Runs a code cell without a model. Without `write`, it can only look: it calls no tools and its assignments are forgotten. */
  "code/execute": { params: CodeExecuteParams; result: CodeExecuteResult };
  /** Returns the variables that code cells of a session have set. Fails if the session's driver runs no code. */
  "code/state": { params: SessionParams; result: CodeStateResult };
  /** Lists the slash commands of a session: the skills and commands of its plugins, and the prompts of their MCP servers. `turn/start` runs one with `command`. */
  "command/list": { params: SessionParams; result: CommandListResult };
  /** Makes one model call outside any turn. */
  "completion/create": { params: CompletionParams; result: CompletionResult };
  /** Shows the request that the next turn would send to the model first. */
  "debug/prompt": { params: DebugPromptParams; result: DebugPromptResult };
  /** Lists open decisions: approvals, questions, and tool calls that wait for tool/complete. */
  "decision/list": { params: DecisionListParams; result: DecisionListResult };
  /** Answers a decision. The first answer counts. To approve a tool call, send the decision's `argsHash`. */
  "decision/respond": { params: DecisionRespondParams; result: DecisionRespondResult };
  /** Appends nodes at the leaf, even during a turn. */
  "graph/append": { params: GraphAppendParams; result: GraphAppendResult };
  /** Pins a node: it stays reachable wherever the leaf moves. */
  "graph/pin": { params: GraphPinParams; result: SeqResult };
  /** Reads a page of nodes on the active branch, starting at the leaf and going back. */
  "graph/read": { params: GraphReadParams; result: GraphReadResult };
  /** Unpins a node. */
  "graph/unpin": { params: GraphPinParams; result: SeqResult };
  /** Opens the connection and negotiates the protocol version. Optional on the socket with line framing. */
  "initialize": { params: InitializeParams; result: InitializeResult };
  /** Lists the files of instructions that the model of a session gets: those of the user and of the workspace, with their sizes. */
  "instruction/list": { params: SessionParams; result: InstructionListResult };
  /** Ends a login in progress. */
  "mcp/cancelLogin": { params: MCPCancelLoginParams; result: Empty };
  /** Completes an argument of a prompt or of a resource template of an MCP server. */
  "mcp/complete": { params: MCPCompleteParams; result: MCPCompleteResult };
  /** Finishes a login with the address that the browser opened, and connects the server. lashd keeps the tokens in the system's keyring or in a private file. */
  "mcp/finishLogin": { params: MCPFinishLoginParams; result: Empty };
  /** Starts an OAuth login to an MCP server of a plugin. Show the address to a person, then call `mcp/finishLogin`. */
  "mcp/login": { params: MCPLoginParams; result: MCPLoginResult };
  /** Deletes the login to an MCP server. */
  "mcp/logout": { params: MCPServerParams; result: MCPLogoutResult };
  /** Lists the resources and resource templates of a session's MCP servers. `turn/start` reads some with `resources`. */
  "mcp/resources": { params: MCPResourcesParams; result: MCPResourcesResult };
  /** Restarts an MCP server of a plugin, and returns its state after that. Calls in progress at this server fail. */
  "mcp/restart": { params: MCPServerParams; result: MCPRestartResult };
  /** Lists the configured models. With `check: true`, also asks each server whether it accepts requests. */
  "model/list": { params: ModelListParams; result: ModelListResult };
  /** Sets the model of new sessions, in config.toml. */
  "model/setDefault": { params: ModelSetDefaultParams; result: ModelSetDefaultResult };
  /** Gives the daemon an API key that its environment lacks. lashd keeps it in memory only. */
  "model/setKey": { params: ModelSetKeyParams; result: Empty };
  /** Sends a model a prompt of two words and returns its reply. */
  "model/test": { params: ModelTestParams; result: ModelTestResult };
  /** Acknowledges wakes, so that the next line wakes the session again. The end of the woken turn does the same. */
  "monitor/ackWake": { params: MonitorAckParams; result: SeqResult };
  /** Starts a monitor: a command whose output lines wake the session. Does nothing if it is already running. */
  "monitor/start": { params: MonitorStartParams; result: MonitorResult };
  /** Lists the monitors of a session. Starts armed monitors. */
  "monitor/status": { params: SessionParams; result: MonitorStatusResult };
  /** Stops a monitor with all its processes, and waits until they have ended. */
  "monitor/stop": { params: MonitorStopParams; result: MonitorResult };
  /** Returns monitor updates since the last call, at most 128. Starts armed monitors. */
  "monitor/updates": { params: SessionParams; result: MonitorUpdatesResult };
  /** Calls a command of a plugin. Waits for the running turn to end; no turn starts before the command returns. */
  "operation/command": { params: OperationParams; result: OperationReceipt };
  /** Lists the operations of plugins. */
  "operation/list": { params: OperationListParams; result: OperationListResult };
  /** Calls a query of a plugin. May run during a turn. */
  "operation/query": { params: OperationQueryParams; result: OperationQueryResult };
  /** Calls a long-running command of a plugin. Cancel the request to stop it early. */
  "operation/task": { params: OperationParams; result: OperationReceipt };
  /** Returns an empty result. */
  "ping": { params: Empty; result: Empty };
  /** Lists plugins, including those that are not loaded, with the reason. */
  "plugin/list": { params: PluginListParams; result: PluginListResult };
  /** Reads the newest log lines of a plugin. */
  "plugin/logs": { params: PluginLogsParams; result: PluginLogsResult };
  /** Returns everything you need to review a plugin before you trust it. */
  "plugin/read": { params: PluginReadParams; result: PluginReadResult };
  /** Scans plugin directories now and loads changes. With `dryRun: true`, only reports them. */
  "plugin/reload": { params: PluginReloadParams; result: PluginReloadResult };
  /** Enables or disables a plugin. */
  "plugin/setEnabled": { params: PluginEnableParams; result: PluginResult };
  /** Trusts a workspace plugin with exactly its current files, and loads it. */
  "plugin/trust": { params: PluginTrustParams; result: PluginResult };
  /** Revokes trust in a workspace plugin. */
  "plugin/untrust": { params: PluginUntrustParams; result: PluginResult };
  /** Begins the login to a provider that takes one in place of a key. */
  "provider/beginLogin": { params: ProviderBeginLoginParams; result: ProviderBeginLoginResult };
  /** Finishes a login and stores it. */
  "provider/finishLogin": { params: ProviderFinishLoginParams; result: StoredKey };
  /** Lists model providers, where their keys come from, and the models of servers that run on this machine. Takes up to 300 ms. */
  "provider/list": { params: Empty; result: ProviderListResult };
  /** Asks the server of a provider for the ids of its models, with the key of the provider. */
  "provider/models": { params: ProviderParams; result: ProviderModelsResult };
  /** Deletes a stored API key or login. */
  "provider/removeKey": { params: ProviderParams; result: ProviderRemoveKeyResult };
  /** Writes the address of a server that needs no key into config.toml, if the server answers. */
  "provider/setAddress": { params: ProviderSetAddressParams; result: ProviderSetAddressResult };
  /** Tests the API key of a provider with one small call and stores it, in the system's keyring or in a file that only the user can read. */
  "provider/setKey": { params: ProviderSetKeyParams; result: StoredKey };
  /** Removes an input that no turn has used yet. */
  "queue/cancel": { params: QueueCancelParams; result: QueueCancelResult };
  /** Lists the queued inputs of a session. */
  "queue/list": { params: QueueListParams; result: QueueListResult };
  /** Returns the OpenRPC document of this protocol. */
  "rpc/discover": { params: Empty; result: unknown };
  /** Stores an approval rule of the user, a workspace or a session. */
  "rule/add": { params: RuleAddParams; result: RuleAddResult };
  /** Lists approval rules of the user, a workspace and a session. */
  "rule/list": { params: RuleListParams; result: RuleListResult };
  /** Removes an approval rule, or an answer that covers later calls. */
  "rule/remove": { params: RuleRemoveParams; result: RuleRemoveResult };
  /** Judges a tool call without making it: the decision, its reason and the rule that decides. */
  "rule/test": { params: RuleTestParams; result: RuleTestResult };
  /** Subscribes to events of the whole daemon. */
  "server/attach": { params: Empty; result: StatusResult };
  /** Copies all stored data to a new directory. Turns keep running during the copy. */
  "server/backup": { params: ServerBackupParams; result: ServerBackupResult };
  /** Reports the daemon's resource use, its modes, and plugins with problems. */
  "server/diagnostics": { params: Empty; result: DiagnosticsResult };
  /** Reports the daemon's version, its uptime, its drivers, and how many sessions, turns and decisions are open. */
  "server/status": { params: Empty; result: StatusResult };
  /** Sends a message to the session's driver. Waits for the running turn to end first. */
  "session/applyExtension": { params: SessionExtensionParams; result: SeqResult };
  /** Archives a session. With `undo: true`, takes it out of the archive. */
  "session/archive": { params: SessionArchiveParams; result: SeqResult };
  /** Subscribes to a session: returns a snapshot or replays missed events, then sends every new event. */
  "session/attach": { params: SessionAttachParams; result: SessionAttachResult };
  /** Unloads an idle session from memory. lashd loads it again on next use. */
  "session/close": { params: SessionMutationParams; result: SeqResult };
  /** Compacts history: from then on the model sees a summary instead. */
  "session/compact": { params: SessionCompactParams; result: SessionCompactResult };
  /** Says what session/compact would summarize and what it would keep. Nothing changes, and no model is called. */
  "session/compactPreview": { params: SessionParams; result: CompactionPreviewResult };
  /** Changes settings. They apply from the next turn on. */
  "session/configure": { params: SessionConfigureParams; result: HeadResult };
  /** Deletes a session permanently. Stops a running turn first. */
  "session/delete": { params: SessionMutationParams; result: SeqResult };
  /** Ends a subscription. */
  "session/detach": { params: SessionParams; result: Empty };
  /** Returns the file changes of a session, a turn or a file point as unified diffs. */
  "session/diff": { params: SessionDiffParams; result: SessionDiffResult };
  /** Writes a session as a Markdown or JSON document, in parts. */
  "session/export": { params: SessionExportParams; result: SessionExportResult };
  /** Creates a session that shares this session's history up to a node. */
  "session/fork": { params: SessionForkParams; result: SessionNewResult };
  /** Creates a session with the history of a document that session/export wrote as JSON. Tool calls in it do not run, and no settings, approvals or plugin state come with it. */
  "session/import": { params: SessionImportParams; result: SessionImportResult };
  /** Lists the texts that people sent to the sessions of a directory, newest first and each once. It covers the newest 5,000 inputs, without those of subagents, plugins and triggers. */
  "session/inputs": { params: SessionInputsParams; result: SessionInputsResult };
  /** Lists sessions, newest first. Sessions of subagents are included only on request. */
  "session/list": { params: SessionListParams; result: SessionListResult };
  /** Creates a session and attaches the connection to it. */
  "session/new": { params: SessionNewParams; result: SessionNewResult };
  /** Lists the file points of a session: what each turn and each undo changed in files. */
  "session/points": { params: SessionParams; result: SessionPointsResult };
  /** Reads a page of items, newest page first. */
  "session/read": { params: SessionReadParams; result: SessionReadResult };
  /** Moves the leaf to an ancestor, restores files, or both. The abandoned branch stays, pinned. */
  "session/rewind": { params: SessionRewindParams; result: SessionRewindResult };
  /** Finds messages of people and models, and titles, by their words. The first search makes the index, which takes a while in a large store. */
  "session/search": { params: SessionSearchParams; result: SessionSearchResult };
  /** Replaces the session's overlay: client tools, MCP servers and prompt text. */
  "session/setOverlay": { params: SessionOverlayParams; result: SessionOverlayResult };
  /** Sets the title of a session. */
  "session/setTitle": { params: SessionSetTitleParams; result: SeqResult };
  /** Waits until no turn is running or queued. */
  "session/wait": { params: SessionWaitParams; result: SessionWaitResult };
  /** Ends this connection's subscriptions; send `exit` next. With `daemon: true`, also stops the daemon. */
  "shutdown": { params: ShutdownParams; result: Empty };
  /** Saves the state of a session under a name: its leaf, its plugins' state and its tools. */
  "snapshot/create": { params: SnapshotMutationParams; result: SnapshotResult };
  /** Deletes a snapshot. */
  "snapshot/delete": { params: SnapshotMutationParams; result: SeqResult };
  /** Lists the snapshots of a session. */
  "snapshot/list": { params: SessionParams; result: SnapshotListResult };
  /** Shows what restoring a snapshot would change, without doing it. */
  "snapshot/preview": { params: SnapshotParams; result: SnapshotPreviewResult };
  /** Reads the contents of a snapshot. */
  "snapshot/read": { params: SnapshotParams; result: SnapshotReadResult };
  /** Restores a snapshot: the leaf, the plugins' state and the tools. History stays. */
  "snapshot/restore": { params: SnapshotMutationParams; result: SnapshotRestoreResult };
  /** Requests that a task ends. The task may still complete. */
  "task/cancel": { params: TaskCancelParams; result: TaskResult };
  /** Requests that all tasks of a session end. */
  "task/cancelAll": { params: TaskCancelAllParams; result: TasksResult };
  /** Reports the outcome of a task that runs outside lashd, or abandons a task. */
  "task/complete": { params: TaskCompleteParams; result: TaskResult };
  /** Lists tasks by time of their last change, or only tasks that changed since a cursor. */
  "task/list": { params: TaskListParams; result: TaskListResult };
  /** Lets another session see a task, or stops that. */
  "task/observe": { params: TaskObserveParams; result: TaskResult };
  /** Reads a range of a task's output. */
  "task/output": { params: TaskOutputParams; result: TaskOutputResult };
  /** Deletes the stored data of ended tasks. Their ids stay reserved. */
  "task/prune": { params: TaskPruneParams; result: TasksResult };
  /** Reads a task and its events. */
  "task/read": { params: TaskReadParams; result: TaskReadResult };
  /** Sends a signal that the task declares, such as input for a command. */
  "task/signal": { params: TaskSignalParams; result: TaskResult };
  /** Starts a task in a session. */
  "task/start": { params: TaskStartParams; result: TaskResult };
  /** Moves tasks to another session, all or none. */
  "task/transfer": { params: TaskTransferParams; result: TasksResult };
  /** Waits for tasks: all of them, the first to end, or the first to succeed. */
  "task/wait": { params: TaskWaitParams; result: TaskWaitResult };
  /** Replaces all tool settings of a session. Fails if their generation has changed. */
  "tool/applyState": { params: ToolApplyStateParams; result: ToolStateResult };
  /** Runs a tool without a model. */
  "tool/call": { params: ToolCallParams; result: ToolCallResult };
  /** Completes a tool call that returned a pending result. */
  "tool/complete": { params: ToolCompleteParams; result: ToolCompleteResult };
  /** Lists the tools of a session. */
  "tool/list": { params: SessionParams; result: ToolListResult };
  /** Asks plugins and MCP servers for their current tools. */
  "tool/refresh": { params: SessionMutationParams; result: ToolStateResult };
  /** Returns the result of a tool call that this client runs. */
  "tool/respond": { params: ToolRespondParams; result: ToolRespondResult };
  /** Sets how tools are offered to the model. */
  "tool/setAvailability": { params: ToolSetAvailabilityParams; result: ToolStateResult };
  /** Adds tools to the model's catalog or removes them. */
  "tool/setMembership": { params: ToolSetMembershipParams; result: ToolStateResult };
  /** Reads the tool settings of a session. */
  "tool/state": { params: SessionParams; result: ToolStateResult };
  /** Deletes a trigger. Events from before the deletion are still delivered. */
  "trigger/delete": { params: TriggerDeleteParams; result: TriggerResult };
  /** Emits an event. The event and its deliveries are stored before the call returns. */
  "trigger/emit": { params: TriggerEmitParams; result: TriggerEmitResult };
  /** Lists emitted events and their deliveries, newest first. */
  "trigger/history": { params: TriggerHistoryParams; result: TriggerHistoryResult };
  /** Lists triggers. */
  "trigger/list": { params: TriggerListParams; result: TriggerListResult };
  /** Creates a trigger that wakes a session or starts a new one. */
  "trigger/register": { params: TriggerRegisterParams; result: TriggerResult };
  /** Lists the event types that plugins and lashd declare. */
  "trigger/types": { params: TriggerTypesParams; result: TriggerTypesResult };
  /** Changes, enables or disables a trigger. */
  "trigger/update": { params: TriggerUpdateParams; result: TriggerResult };
  /** Stops a turn. */
  "turn/interrupt": { params: TurnInterruptParams; result: TurnInterruptResult };
  /** Lists the turns of a session, newest first. */
  "turn/list": { params: TurnListParams; result: TurnListResult };
  /** Returns the current report of a turn. */
  "turn/read": { params: TurnParams; result: TurnReport };
  /** Starts a turn and waits until it and its follow-up turns have ended. */
  "turn/run": { params: TurnStartParams; result: TurnReport };
  /** Stores an input, then starts its turn or queues it. */
  "turn/start": { params: TurnStartParams; result: TurnStartResult };
  /** Sends an input to a running turn. The turn reads it at its next checkpoint. */
  "turn/steer": { params: TurnSteerParams; result: TurnSteerResult };
  /** Reads the stored events of a turn, in order. The turn may still be running. */
  "turn/trace": { params: TurnTraceParams; result: TurnTraceResult };
  /** Waits for the end of a turn. Any client may call it, at any time. */
  "turn/wait": { params: TurnWaitParams; result: TurnReport };
  /** Sums token usage by source and model. */
  "usage/read": { params: UsageReadParams; result: UsageReadResult };
}

/** The params of every notification to a client. */
export interface Notifications {
  /** An event of a session that the connection is attached to. */
  "session/event": Event;
  /** Some events of a session cannot be replayed: read the session again. */
  "session/gap": Gap;
  /** A change of a session, a trigger, a plugin or the store. */
  "server/event": ServerEvent;
}
