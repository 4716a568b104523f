// Generated from the method table of lashd; do not edit.

/** AppendStatus is the outcome of an append. */
export type AppendStatus = "appended" | "staleBranch";

/** ApprovalConfig decides which tool calls a person is asked about. */
export interface ApprovalConfig {
  /** default ask for tools that change things, allow for the rest */
  mode?: ApprovalMode;
  rules?: ApprovalRule[];
  /** how long a question stays open; 0: ten minutes */
  deadlineMs?: number;
  /** what a passed deadline means; deny unless set to allow */
  default?: ApprovalMode;
}

/** ApprovalMode is what happens to a tool call that no rule matches. */
export type ApprovalMode = "allow" | "ask" | "deny";

/** ApprovalRule decides for the tools and arguments it matches. The strictest of all rules that match counts. One that asks or denies also matches tools that say that they are like one that it names. A prefix is compared with what a call is about: its command, or paths, of a patch all that it names. A rule that asks or denies matches if it is about one of them; a rule that allows, if about all. A command is parsed as a shell does, and the words of the prefix are compared with each simple command in it, also with those that env, sudo, sh -c and the like run. A rule that allows must match all of them, and the line must hold only literal words. A rule that denies asks if it cannot be known what the command runs. A prefix with a slash names a program, or a directory of programs. A path must be that of the rule, or lie below; both are absolute or from the workspace on. They are looked at as they are written, and as symbolic links lead: to ask or deny one is enough, in whatever case; to allow it takes both. */
export interface ApprovalRule {
  /** a name, or a pattern with * */
  tool: string;
  /** how the command must begin, or where the path must be */
  prefix?: string;
  action: ApprovalMode;
}

/** ArtifactReadParams reads a part of an artifact. */
export interface ArtifactReadParams {
  digest: Digest;
  offset?: number;
  /** 1 to 1048576 bytes; absent: 1048576 */
  limit?: number;
}

/** ArtifactReadResult is a part of an artifact. It is the last one if Offset and its length come to Size. */
export interface ArtifactReadResult {
  digest: Digest;
  /** of the whole */
  size: number;
  offset: number;
  bytes: string;
}

/** ArtifactRef points at bytes kept beside the conversation. */
export interface ArtifactRef {
  digest: Digest;
  size: number;
  type?: string;
}

/** ArtifactWriteParams sends a part of an artifact of a session. The parts of one upload come one after the other, the first at offset 0; with Done the artifact is stored, and durable with the answer. Until then its parts are in memory only. An upload that is not done is forgotten when nothing comes for ten minutes, and when the daemon ends. */
export interface ArtifactWriteParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  /** chosen by the client */
  uploadId: string;
  offset?: number;
  /** at most 1 MiB */
  bytes: string;
  done?: boolean;
  /** of the whole, with Done: checked if given */
  digest?: Digest;
}

/** ArtifactWriteResult tells how far an upload is. */
export interface ArtifactWriteResult {
  received: number;
  /** once it is stored */
  digest?: Digest;
  /** all that was received survives a crash; false: a crash loses it, and the upload begins at 0 again */
  durable?: boolean;
  duplicate?: boolean;
}

/** AssistantOutput is the text of a turn: Raw as the model gave it, Safe without protocol syntax. */
export interface AssistantOutput {
  safe: string;
  /** only where it differs from Safe */
  raw?: string;
  state: OutputState;
}

/** Attachment is a file that came with an input. */
export interface Attachment {
  name?: string;
  /** media type */
  type: string;
  /** inline, base64 on the wire */
  data?: string;
  /** stored */
  digest?: Digest;
  /** external */
  url?: string;
}

/** AttemptOutcome is how an attempt ended. */
export type AttemptOutcome = "completed" | "failed" | "aborted" | "interrupted";

/** Authority is what a session was granted when it was created. It is stored with the session and given to it again whenever it is opened; whatever a session makes of itself or of its forks, it never has more. */
export interface Authority {
  /** if any: exactly these tools exist, in this order */
  tools?: string[];
  /** no tool exists, whoever offers one; there is no list of tools then */
  noTools?: boolean;
  /** names that are in no catalog, whoever offers them */
  hiddenTools?: string[];
  /** of a session that works for another */
  subagent?: Subagent;
  /** of a session that a plugin or another session asked for: what that one may do */
  ceiling?: Ceiling;
}

/** Boundary is the checkpoint at which a steered input may enter a running turn. */
export type Boundary = "afterWork" | "beforeCompletion";

/** Budget bounds a turn. */
export interface Budget {
  /** model calls a turn may make; -1: no bound */
  iterations: number;
  /** attempts without an error-free execution; 0: 12 */
  noProgress?: number;
}

/** CallAttempt is one try of a model call. */
export interface CallAttempt {
  outcome: AttemptOutcome;
  error?: Issue;
  /** HTTP status, when there was one */
  status?: number;
  /** connecting, waiting, streaming */
  position?: string;
  /** why it was or was not tried again */
  retry?: string;
  /** before the next attempt */
  waitMs?: number;
}

/** as the model gave it, or derived from turn, iteration and position */
export type CallID = string;

/** CallRecord tells all about one model call, whether it succeeded or not. */
export interface CallRecord {
  iteration: number;
  provider: string;
  model: string;
  stop?: StopReason;
  /** absent when it was lost or never reported */
  usage?: Usage;
  attempts: CallAttempt[];
  options?: OptionReceipt[];
  durationMs: number;
}

/** CancelEvidence says who cancelled. Requests that lashd makes itself have ids of the form internal:<subject>. */
export interface CancelEvidence {
  requestId: string;
  origin?: string;
  reason?: string;
}

/** CancelStatus tells what became of the wish to withdraw an input. */
export type CancelStatus = "cancelled" | "alreadyClaimed" | "alreadyCompleted" | "alreadyCancelled" | "notFound";

/** CancelledInput is what became of one input. */
export interface CancelledInput {
  inputId: InputID;
  status: CancelStatus;
}

/** Ceiling limits a session, an input or a task that a plugin or another session asked for to what the asker may do. It applies beside the session's own configuration, and no configuration lifts it. */
export interface Ceiling {
  /** of the askers: each decides about a tool call, and the strictest decision counts */
  policies?: Policy[];
  /** directories: the session's workspace is in all of them */
  roots?: string[];
  /** an asker is in plan mode: only tools that are known to read, search or think may be called, and no commands or code run */
  readOnly?: boolean;
  /** an asker is in a sandbox: a person is asked about each call that could start a program outside it */
  sandboxed?: boolean;
  /** if any: no other tool may be called */
  tools?: string[];
  /** no tool may be called */
  noTools?: boolean;
  /** names of tools that may not be called */
  hiddenTools?: string[];
}

/** ClientCapabilities says what a client can do. */
export interface ClientCapabilities {
  /** leave item/delta out */
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

/** ClientTool is a tool that the client itself runs. */
export interface ClientTool {
  id?: string;
  name: string;
  description: string;
  input?: unknown;
  kind?: ToolKind;
  activation?: ToolActivation;
  like?: string;
  bindings?: Record<string, unknown>;
  /** absent: never */
  replay?: Replay;
  /** absent: two minutes */
  deadlineMs?: number;
}

/** of a call that waits: only who took it has it */
export type CompletionKey = string;

/** CompletionParams is one model call outside of any turn. */
export interface CompletionParams {
  idempotencyKey?: string;
  /** whose ledger it is booked to */
  sessionId?: SessionID;
  model?: string;
  system?: string;
  messages: Message[];
  generation?: GenerationOptions;
  /** the answer is JSON of this schema */
  schema?: unknown;
  /** the ledger's source; absent: completion */
  label?: string;
}

/** CompletionResult is the reply. */
export interface CompletionResult {
  message: Message;
  text: string;
  stop: StopReason;
  call: CallRecord;
  duplicate?: boolean;
}

/** Config is the settings of a session, as its head and its frames carry them. */
export interface Config {
  driver: string;
  model: ModelSpec;
  budget: Budget;
  /** the session's own layer of the system prompt */
  prompt?: string;
  generation?: GenerationOptions;
  approval?: ApprovalConfig;
  /** by plugin id */
  options?: PluginOptions;
  unknownOutcome?: UnknownOutcomeRule;
  /** default merge */
  drain?: DrainPolicy;
}

/** CronSource says when a schedule is due. */
export interface CronSource {
  /** minute, hour, day, month and weekday, as cron has them; or @hourly, @daily, @weekly, @monthly, @yearly, @every 90m */
  schedule: string;
  /** such as Europe/Zurich; absent: that of the machine */
  timeZone?: string;
  /** what becomes of times at which lashd did not run, or the machine slept */
  missed: MissedTicks;
}

/** DebugPromptParams asks what would be sent to the model now. */
export interface DebugPromptParams {
  sessionId: SessionID;
  input?: InputPart[];
}

/** DebugPromptResult is the exact request of the session's next model call, before the adapter encodes it, except for what the issues tell of. */
export interface DebugPromptResult {
  model: ModelSpec;
  system: string;
  tools: ToolManifest[];
  messages: Message[];
  options: GenerationOptions;
  /** as the adapter would send it, where it can tell */
  body?: unknown;
  /** Plugins whose part is missing: they failed, with the code that the turn would fail with; or, beside a turn or a command, they were not_asked. */
  issues?: Issue[];
}

/** Decision is a durable question to a person. It outlives clients and restarts; the first answer counts. */
export interface Decision {
  decisionId: DecisionID;
  sessionId: SessionID;
  turnId?: TurnID;
  kind: DecisionKind;
  call?: ToolCall;
  /** an approval is good for exactly these arguments; of a question: which one of its call it is */
  argsHash?: Digest;
  /** the question, for a person */
  prompt: string;
  /** of an approval: arguments that allowSession and allowAlways do not look at */
  varying?: string[];
  /** of an approval: where paths of the call lead, which it holds for; empty where nobody can tell */
  places?: string[];
  /** of a question: JSON Schema of the value of an answer; absent: any value */
  form?: unknown;
  choices: DecisionChoice[];
  /** what a passed deadline means */
  default: DecisionChoice;
  openedAtMs: number;
  /** wall-clock time; 0: none */
  deadlineAtMs: number;
  /** of a completion */
  deferral?: Deferral;
  answer?: DecisionAnswer;
}

/** DecisionAnswer is who answered a decision, and how. */
export interface DecisionAnswer {
  choice: DecisionChoice;
  value?: unknown;
  /** a client id, deadline, or internal:<subject> */
  by: string;
  atMs: number;
}

/** DecisionChoice is an answer that a decision offers. */
export type DecisionChoice = "allowOnce" | "allowSession" | "allowAlways" | "reject" | "happened" | "didNotRun" | "runAgain" | "tellModel" | "answer" | "cancelled" | "unavailable";

/** dec_... */
export type DecisionID = string;

/** DecisionKind is what a person is asked. */
export type DecisionKind = "approval" | "outcome" | "question" | "completion";

/** DecisionListParams lists open decisions; without a session, those of all. */
export interface DecisionListParams {
  /** with those of all sessions that work for it */
  sessionId?: SessionID;
}

/** DecisionListResult are the open decisions. */
export interface DecisionListResult {
  data: Decision[];
}

/** DecisionRespondParams answers a decision. To approve a tool call, argsHash is required: it must be that of the decision. */
export interface DecisionRespondParams {
  idempotencyKey?: string;
  decisionId: DecisionID;
  /** one of the decision's choices */
  choice: DecisionChoice;
  /** with answer: a value that fits the decision's form */
  value?: unknown;
  /** the decision's argsHash; required for each choice of an approval but reject, ignored otherwise */
  argsHash?: Digest;
}

/** DecisionRespondResult is the answer that counts: ours, or the one that came first. */
export interface DecisionRespondResult {
  answer: DecisionAnswer;
  won: boolean;
  seq: Seq;
  duplicate?: boolean;
}

/** Deferral says how long a call waits for its completion, and what becomes of it without one. */
export interface Deferral {
  /** from when the key is taken; absent: a day */
  deadlineMs?: number;
  onTimeout?: OnTimeout;
  onCancel?: OnCancel;
}

/** Delivery is when a wake comes to the model. */
export type Delivery = "earliestBoundary" | "afterTurn";

/** DeliveryState is what has come of a delivery. All but reserved are final. */
export type DeliveryState = "reserved" | "delivered" | "refused" | "failed" | "targetGone";

/** DiagnosticsResult is what server/diagnostics answers. */
export interface DiagnosticsResult {
  rssBytes: number;
  heapBytes: number;
  goroutines: number;
  openFiles: number;
  /** absent: not known */
  openFilesLimit?: number;
  children: number;
  dbBytes: number;
  walBytes: number;
  durability: string;
  /** what programs of plugins are confined by that ask for it */
  sandbox: string;
  /** what ends the processes that commands leave: supervisors, and a cgroup where the system allows one */
  containment: string;
  storeId: string;
  epoch: number;
  /** to slow clients */
  queuedBytes: number;
  traceRecordsLost: number;
  /** directories of plugins, and how they are watched */
  roots: PluginRoot[];
  /** that are not as they should be, of the user and of all workspaces that are in use */
  ailingPlugins: PluginInfo[];
}

/** sha256 of bytes, in hex */
export type Digest = string;

/** DrainPolicy is how many wakes that may share a turn do. */
export type DrainPolicy = "merge" | "one";

/** EffectOutcome says what a failed mutation left behind. */
export type EffectOutcome = "none" | "durable" | "unknown";

/** Empty are the params or the result of a method that has none. */
export type Empty = Record<string, never>;

/** ErrorData is the data member of every error. */
export interface ErrorData {
  /** a word of the table of errors */
  kind: ErrorKind;
  /** what to do: now, reload or never */
  retry: RetryAdvice;
  /** what the request left behind: none, durable or unknown; in every error of the daemon */
  outcome?: EffectOutcome;
  /** JSON pointer to the wrong parameter */
  pointer?: string;
  /** the method or name that was probably meant */
  nearest?: string;
  /** not before */
  retryAfterMs?: number;
  /** the current one, of a generationMismatch */
  generation?: number;
  /** the running one, of a turnActive */
  turnId?: TurnID;
  /** the first 100 of those that stand against it, of a fileConflict */
  files?: FileRewind[];
}

/** ErrorKind is the stable word that every error carries in data.kind. */
export type ErrorKind = "parseError" | "badFrame" | "frameTooLarge" | "foreignProtocol" | "invalidRequest" | "notInitialized" | "methodNotFound" | "invalidParams" | "internal" | "denied" | "overloaded" | "cancelled" | "sessionNotFound" | "turnNotFound" | "nodeNotFound" | "inputNotFound" | "decisionNotFound" | "toolNotFound" | "triggerNotFound" | "callNotFound" | "modelNotFound" | "driverNotFound" | "snapshotNotFound" | "taskNotFound" | "taskElsewhere" | "taskEnded" | "monitorNotFound" | "artifactNotFound" | "unknownOperation" | "missingSession" | "unexpectedSession" | "operationFailed" | "pluginFailed" | "pluginNotFound" | "pluginTrusted" | "mcpServerTaken" | "pluginModified" | "extensionRejected" | "sessionDeleted" | "sessionStillInUse" | "turnActive" | "turnNotActive" | "conflict" | "forkPointNotRetained" | "fileConflict" | "filesUnrestorable" | "pointNotFound" | "generationMismatch" | "tooLarge" | "providerError" | "storageFull" | "storageBusy" | "storagePoisoned" | "storageReadOnly" | "shuttingDown";

/** Event is what observers of a session see. Type tells which of the fields below it are set; the event table of the protocol document lists them. An event with a Seq is durable, the others are not and are never replayed. */
export interface Event {
  /** always set on the wire */
  sessionId?: SessionID;
  seq?: Seq;
  atMs: number;
  turnId?: TurnID;
  type: EventType;
  item?: Item;
  itemId?: ItemID;
  /** of Text in the item's text, in bytes */
  offset?: number;
  text?: string;
  input?: InputPart[];
  inputIds?: InputID[];
  /** of the inputs that no person sent; their text is in Input */
  causes?: TurnCause[];
  boundary?: Boundary;
  outcome?: TurnOutcome;
  /** the turn that goes on in another frame */
  followedBy?: TurnID;
  usage?: Usage;
  /** of the session, this turn included */
  total?: Usage;
  issues?: Issue[];
  call?: CallRecord;
  iteration?: number;
  decision?: Decision;
  toolCall?: ToolCall;
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
}

/** EventType names what happened. See Durable for which types have a Seq. */
export type EventType = "turn/accepted" | "turn/started" | "turn/completed" | "item/started" | "item/delta" | "item/completed" | "item/retracted" | "model/requested" | "model/recorded" | "input/accepted" | "decision/opened" | "decision/resolved" | "tool/requested" | "tool/progress" | "retry/status" | "plugin/status" | "plugin/custom" | "frame/opened" | "session/configured" | "session/forked" | "session/rewound" | "session/compacted" | "tools/changed" | "queue/changed" | "task/started" | "task/changed" | "task/completed" | "monitor/update" | "snapshot/created" | "snapshot/deleted" | "file/point" | "usage/updated";

/** FailureClass groups tool failures. */
export type FailureClass = "invalidRequest" | "io" | "unavailable" | "permissionDenied" | "timeout" | "execution" | "external" | "resourceLimit" | "internal";

/** FailureSource says which part of the system a failure comes from. */
export type FailureSource = "runtime" | "tool" | "plugin" | "policy" | "cancellation";

/** FileChange is an edit of a workspace file, for clients to show. */
export interface FileChange {
  path: string;
  /** unified */
  diff: string;
  added: number;
  removed: number;
}

/** FileConflict is why a file is brought back by force only: something would be lost. */
export type FileConflict = "changedSince" | "shared" | "unsure" | "notKept";

/** FileDiff is a change of a file that a turn made, or a session. */
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
  /** unified; absent where there is none, or where it would be too long */
  diff?: string;
  /** the diff is too long */
  cut?: boolean;
  unkept?: FileProblem;
}

/** FileEffect is what is done to a file. */
export type FileEffect = "created" | "modified" | "deleted";

/** FileKind is what stands at a path of a workspace. */
export type FileKind = "file" | "link" | "directory" | "unknown";

/** FilePoint is what one turn, or one rewind, did to the files of a workspace: of each what it was before, and after. Files can be brought back to how they were before it. */
export interface FilePoint {
  pointId: PointID;
  sessionId: SessionID;
  kind: PointKind;
  state: PointState;
  turnId?: TurnID;
  /** of a rewind: files are as they were before this point */
  to?: PointID;
  atMs: number;
  /** how many it changed */
  files: number;
  /** of these, without a copy of what they were before */
  unkept?: number;
  /** why files cannot be brought back to before it; absent: they can */
  unrestorable?: string;
  /** by a rewind that came later */
  undone?: boolean;
}

/** FileProblem is why lashd has no copy of a file, so that it cannot be brought back. */
export type FileProblem = "tooLarge" | "unreadable" | "late" | "noRoom" | "ignored" | "privileged";

/** FileRewind is what a rewind does to a file. */
export interface FileRewind {
  /** from the workspace, with slashes */
  path: string;
  effect: FileEffect;
  kind: FileKind;
  /** lines */
  added?: number;
  /** lines */
  removed?: number;
  /** the lines are not counted */
  binary?: boolean;
  conflict?: FileConflict;
  /** there is no copy of what it was: it stays as it is */
  unkept?: FileProblem;
  /** why it stayed as it was although it was to be brought back */
  problem?: string;
}

/** FileSource says which files are watched. Changes while lashd does not run are not noticed. */
export interface FileSource {
  /** of paths in the directory; * and ? stay within a name, ** crosses directories; without a slash: of names */
  glob: string;
  /** absolute; absent: the workspace of the session that is woken, or of the new one */
  dir?: string;
}

/** FileState is what stands at a path at a moment. Nothing there is no state. */
export interface FileState {
  kind: FileKind;
  /** permissions, with setuid, setgid and sticky */
  mode?: number;
  size?: number;
  /** of the content of a file, if there is a copy */
  digest?: Digest;
  /** where a link leads */
  link?: string;
  /** why there is no copy */
  problem?: FileProblem;
}

/** ForkCatalog says which tools a fork begins with. */
export type ForkCatalog = "inherit" | "fresh";

/** ForkSource is the point at which a fork begins. */
export interface ForkSource {
  sessionId: SessionID;
  node: NodeID;
}

/** the node id of a frame-open node */
export type FrameID = string;

/** FrameOpen starts a frame: a labelled interval of history with its own settings. */
export interface FrameOpen {
  /** deterministic from the call site, so that a retry opens the same frame */
  key: string;
  /** initial, continueAs, compaction, subagent, or a plugin's own word */
  reason: string;
  config: Config;
}

/** FrameSwitch asks for a fresh frame in which the work goes on. With a blank key or task, or with the key of the frame that there is, it asks for nothing. */
export interface FrameSwitch {
  key: string;
  task: string;
  nodes?: NodeBody[];
}

/** Gap tells a client that events cannot be replayed: it must read the session again. */
export interface Gap {
  sessionId: SessionID;
  fromSeq: Seq;
  toSeq: Seq;
  /** trimmed, otherStore, rolledBack */
  reason: string;
}

/** GenerationOptions are asked of the model; each call record says what became of them. */
export interface GenerationOptions {
  maxOutput?: number;
  temperature?: number;
  seed?: number;
  stop?: string[];
}

/** GraphAppendParams adds nodes to history, also beside a running turn. */
export interface GraphAppendParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  nodes: NodeBody[];
  /** must still be on the active path */
  requiresAncestorNodeId?: NodeID;
  /** the same operation adds the same nodes once */
  operationId?: string;
}

/** GraphAppendResult tells whether nodes were added. A stale branch is an answer, not an error. */
export interface GraphAppendResult {
  status: AppendStatus;
  nodeIds?: NodeID[];
  leaf: NodeID;
  seq: Seq;
  duplicate?: boolean;
}

/** GraphPinParams keeps a node of the active path reachable, or lets it go. */
export interface GraphPinParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  nodeId: NodeID;
  reason?: string;
}

/** GraphReadParams reads nodes of the active path, backwards from a cursor. */
export interface GraphReadParams {
  sessionId: SessionID;
  cursor?: string;
  /** 1 to 500; absent: 200. A page of large ones ends earlier, after 4 MiB */
  limit?: number;
}

/** GraphReadResult is a page of nodes in order, and the frames and pins of the session. */
export interface GraphReadResult {
  head: Head;
  data: Node[];
  pins: PinInfo[];
  nextCursor?: string;
}

/** Head is where a session stands in its history. Revision grows by one with each commit that moves the leaf or the configuration. */
export interface Head {
  revision: number;
  leaf: NodeID;
  generation: number;
  frame: FrameID;
}

/** HeadResult is where a session stands after a change. */
export interface HeadResult {
  head: Head;
  seq: Seq;
  duplicate?: boolean;
}

/** InitializeParams opens a connection. */
export interface InitializeParams {
  /** absent: any */
  protocolVersion?: number;
  clientInfo: ClientInfo;
  /** keeps tools and answers with a client that reconnects */
  clientId?: ClientID;
  capabilities?: ClientCapabilities;
}

/** InitializeResult says who answers. */
export interface InitializeResult {
  protocolVersion: number;
  serverInfo: ClientInfo;
  clientId: ClientID;
  storeId: string;
  /** random, below 10^14; a cursor of another store or epoch is answered with a gap */
  epoch: number;
  features: string[];
  dataDir: string;
  /** names of API keys that the daemon's own environment lacks; model/setKey takes them */
  keysWanted?: string[];
}

/** inp_... */
export type InputID = string;

/** InputPart is one piece of what a person sends: text or an attachment. */
export interface InputPart {
  type: InputType;
  text?: string;
  attachment?: Attachment;
}

/** InputState is where an input is. */
export type InputState = "pendingActive" | "deferredNextTurn" | "queued" | "accepted" | "completed" | "cancelled";

/** InputType is the kind of an input part. */
export type InputType = "text" | "attachment";

/** IntentKind names what an intent wants, as its field does. */
export type IntentKind = "startTask" | "signalTask" | "cancelTask" | "emitTaskEvent" | "emitTrigger";

/** IntentOutcome is what became of an intent. What was not refused is durable with the result of its call. */
export interface IntentOutcome {
  /** follows from session, turn, call and place */
  intentId: string;
  kind?: IntentKind;
  taskId?: TaskID;
  /** absent: it was not */
  refused?: IntentRefusal;
  message?: string;
}

/** IntentRefusal is why an intent was not carried out. */
export type IntentRefusal = "malformed" | "tooMany" | "tooManyOfKind" | "tooLarge" | "callFailed" | "noTurn" | "turnCancelled" | "invalid" | "conflict" | "taskNotFound" | "taskEnded" | "taskNotAtWork";

/** InterruptStatus tells who won. */
export type InterruptStatus = "requested" | "alreadyRequested" | "completionWon";

/** Issue is something that went wrong in a turn, whether or not it ended the turn. */
export interface Issue {
  /** provider, tool, plugin, protocol, store, runtime */
  kind: string;
  /** a stable word */
  code: string;
  message: string;
  stop?: StopReason;
  /** at most 4,000 characters, head and tail */
  raw?: string;
  retryable?: boolean;
}

/** Item is a thing shown in a turn. */
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
  output?: ToolOutput;
  durationMs?: number;
  attachment?: Attachment;
  origin?: Origin;
  plugin?: PluginNode;
}

/** node id and part index: nod_...:0 */
export type ItemID = string;

/** ItemKind is what an item shows. */
export type ItemKind = "userMessage" | "agentMessage" | "reasoning" | "toolCall" | "codeCell" | "fileChange" | "plan" | "compaction" | "notice";

/** ItemStatus is where an item is. */
export type ItemStatus = "inProgress" | "completed" | "failed" | "unknown";

/** MCPServer is an MCP server, in the words of .mcp.json: it has a command or a url. What stands in it is meant as it stands. Nothing of it is stored, and values of env and headers are in nothing that lashd says. */
export interface MCPServer {
  /** how it is spoken to; absent: as its other fields say */
  type?: MCPTransport;
  /** a program: a name that is looked up, or an absolute path; never through a shell */
  command?: string;
  /** of the program */
  args?: string[];
  /** of the program; of lashd's environment it gets the usual few */
  env?: Record<string, string>;
  /** where it is, if it is spoken to by streamable HTTP */
  url?: string;
  /** of each request */
  headers?: Record<string, string>;
  /** how long a call may take; absent: ten minutes */
  timeoutMs?: number;
}

/** MCPServers are MCP servers that a client brings to a session, by name: the model knows their tools as mcp__name__tool. They are there as long as the client is. */
export type MCPServers = Record<string, MCPServer>;

/** MCPTransport says how an MCP server is spoken to. */
export type MCPTransport = "stdio" | "http";

/** Message is one entry of a conversation. */
export interface Message {
  role: Role;
  parts: Part[];
  origin?: Origin;
}

/** MissedTicks is what becomes of times of a schedule that nobody was there for. One that is less than a minute late, and the newest, is not missed. */
export type MissedTicks = "skip" | "runOnce" | "runAll";

/** ModelInfo is a model that sessions can use. */
export interface ModelInfo {
  /** as session/new takes it */
  name: string;
  model: ModelSpec;
  default?: boolean;
  /** absent: the configuration has none */
  price?: Price;
  /** with check: why calls of this model would fail */
  problem?: Issue;
}

/** ModelListParams asks for the configured models. */
export interface ModelListParams {
  /** also ask each model's server whether it takes requests; takes up to five seconds */
  check?: boolean;
}

/** ModelListResult are the configured models. */
export interface ModelListResult {
  data: ModelInfo[];
}

/** ModelSetKeyParams hands the daemon an API key that its own environment lacks. It is kept in memory only. */
export interface ModelSetKeyParams {
  /** one of initialize's keysWanted */
  name: string;
  key: string;
}

/** ModelSpec names a model and says what it can do. It is configuration: nothing is guessed from a name. */
export interface ModelSpec {
  provider: string;
  id: string;
  /** tokens; 0: not known */
  contextWindow?: number;
  /** tokens; 0: not known */
  outputLimit?: number;
  /** absent: not configurable */
  reasoning?: ReasoningSpec;
  /** one of Reasoning.Efforts */
  effort?: string;
  /** a call may be repeated after output began */
  idempotent?: boolean;
  pinnedSampling?: boolean;
}

/** Monitor is a monitor of a session, as it is. */
export interface Monitor {
  spec: MonitorSpec;
  /** that declares it */
  plugin?: string;
  /** it runs, or is begun at the next turn or when somebody asks for the monitors */
  armed: boolean;
  state: MonitorState;
  /** of its newest run */
  taskId?: TaskID;
  /** its newest line, or the beginning of it */
  lastEvent?: string;
  /** why its newest run failed */
  lastError?: string;
  /** of its newest run */
  lastExitCode?: number;
  /** lines that were told of */
  eventCount: number;
  /** lines that came too fast to be */
  droppedCount?: number;
  wakeOutstanding?: boolean;
}

/** MonitorAckParams says that the wakes of monitors were taken notice of. */
export interface MonitorAckParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  monitorIds: string[];
}

/** MonitorArm is when a monitor is begun. */
export type MonitorArm = "manual" | "sessionStart";

/** MonitorResult is a monitor after a change. */
export interface MonitorResult {
  monitor: Monitor;
  /** it ran already */
  existing?: boolean;
  seq: Seq;
  duplicate?: boolean;
}

/** MonitorSpec is a command that is watched, and how. */
export interface MonitorSpec {
  /** letters, digits, dots, dashes and underscores; of one that a plugin declares, after the plugin's name and a colon */
  monitorId: string;
  /** what sh shall run */
  command: string;
  /** relative to that of the session; empty: that */
  cwd?: string;
  /** variables of its environment */
  env?: Record<string, string>;
  /** it has no time limit */
  persistent?: boolean;
  /** after which it is stopped and has failed; 0: 300000, at most 3600000 */
  timeoutMs?: number;
  armOn?: MonitorArm;
  wake?: MonitorWake;
  /** it is begun again after a restart of the daemon, or where its session is restored or forked */
  restartOnRestore?: boolean;
}

/** MonitorStartParams starts a monitor. Without a command it is the one that is known by the id. */
export interface MonitorStartParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  spec: MonitorSpec;
}

/** MonitorState is where a monitor is. */
export type MonitorState = "idle" | "running" | "stopped" | "exited" | "failed";

/** MonitorStatusResult are the monitors of a session, by id. */
export interface MonitorStatusResult {
  /** grows with each change but lines and wakes */
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

/** MonitorStream is where a line was written to. */
export type MonitorStream = "stdout" | "stderr";

/** MonitorUpdate is a line of a monitor, or its end. */
export interface MonitorUpdate {
  /** grows in its session, for ever */
  sequence: number;
  monitorId: string;
  atMs: number;
  /** of a line */
  stream?: MonitorStream;
  /** of the end of a run: what the monitor is then */
  state?: MonitorState;
  message: string;
  /** the line was longer */
  cut?: boolean;
  /** lines after this one came too fast to be told of */
  dropped?: number;
  /** it is part of what woke the session */
  wakes?: boolean;
}

/** MonitorUpdatesResult is what was told since somebody asked before: the newest 128 at most. Who asks gets each once; a gap in the sequence are those that are lost to this list. The events of the session hold all. */
export interface MonitorUpdatesResult {
  revision: number;
  activeCount: number;
  events: MonitorUpdate[];
}

/** MonitorWake is what a line on the standard output of a monitor does. One on its standard error is only told of. */
export type MonitorWake = "queueTurn" | "notify";

/** Node is an immutable entry of a session's history. Exactly one of Message, Plugin and Frame is set. */
export interface Node {
  nodeId: NodeID;
  /** empty only for the root, which opens a frame */
  parent?: NodeID;
  /** 0 for the root, parent + 1 otherwise */
  generation: number;
  frame: FrameID;
  turnId?: TurnID;
  atMs: number;
  message?: Message;
  plugin?: PluginNode;
  frameOpen?: FrameOpen;
}

/** NodeBody is the content of a node that is not placed in history yet: what a client appends and a turn produces. */
export interface NodeBody {
  message?: Message;
  plugin?: PluginNode;
  frameOpen?: FrameOpen;
}

/** nod_..., derived from session, operation and ordinal */
export type NodeID = string;

/** Occurrence is something that happened, once. */
export interface Occurrence {
  occurrenceId: OccurrenceID;
  type: string;
  sourceKey?: string;
  occurrenceKey: string;
  payload: unknown;
  atMs: number;
  deliveries: TriggerDelivery[];
}

/** occ_..., derived from what makes it the same occurrence */
export type OccurrenceID = string;

/** OnCancel is what becomes of the work outside when the turn is cancelled. */
export type OnCancel = "ignore" | "cancel";

/** OnTimeout is what a passed deadline means for the turn of a call. */
export type OnTimeout = "failCall" | "failTurn";

/** OperationInfo describes an operation that a plugin offers to clients. Its name is unique in a session. */
export interface OperationInfo {
  name: string;
  plugin: string;
  description?: string;
  kind: OperationKind;
  session: SessionRule;
  inputSchema?: unknown;
  outputSchema?: unknown;
}

/** OperationKind says what an operation may do. */
export type OperationKind = "query" | "command" | "task";

/** OperationListParams names a session, or none: then the operations are listed as they are for new sessions. */
export interface OperationListParams {
  sessionId?: SessionID;
}

/** OperationListResult are operations, by name, and what plugins take with turn/start. */
export interface OperationListResult {
  data: OperationInfo[];
  turnInputs: TurnInputInfo[];
}

/** OperationParams has a plugin do something. */
export interface OperationParams {
  idempotencyKey?: string;
  /** as the operation's session rule says */
  sessionId?: SessionID;
  name: string;
  /** absent: an empty object */
  args?: unknown;
}

/** OperationQueryParams asks a plugin. */
export interface OperationQueryParams {
  /** as the operation's session rule says */
  sessionId?: SessionID;
  name: string;
  /** absent: an empty object */
  args?: unknown;
}

/** OperationQueryResult is what the plugin answers. */
export interface OperationQueryResult {
  plugin: string;
  output: unknown;
}

/** OperationReceipt is what an operation came to. All of it is durable. */
export interface OperationReceipt {
  plugin: string;
  output: unknown;
  /** that it added to history */
  events: PluginNode[];
  /** that it queued, now or when it was called before */
  inputs: QueuedInput[];
  /** what went wrong and did not hinder it */
  issues?: Issue[];
  /** 0 without a session */
  seq: Seq;
  duplicate?: boolean;
}

/** OptionReceipt says what became of a generation option. */
export interface OptionReceipt {
  option: string;
  /** applied, suppressed, omittedUnsupported, omittedPinned, clamped */
  fate: string;
}

/** Origin records where a message came from. */
export interface Origin {
  kind: OriginKind;
  turnId?: TurnID;
  inputId?: InputID;
  plugin?: string;
  /** of a message that woke the session, whose text says what the model is told */
  cause?: TurnCause;
  /** shown to the model once, never stored */
  transient?: boolean;
}

/** OriginKind says where a message that no person typed came from. */
export type OriginKind = "turnInput" | "plugin" | "process";

/** OutcomeKind is how a turn ended. */
export type OutcomeKind = "assistantMessage" | "finalValue" | "toolValue" | "frameSwitch" | "cancelled" | "incomplete" | "invalidInput" | "maxTurns" | "toolFailure" | "providerError" | "pluginAbort" | "runtimeError" | "submittedError" | "toolError";

/** OutputState says what the text of a turn is good for. */
export type OutputState = "usable" | "empty" | "tracebackOnly" | "recoveredFromError";

/** OutputStatus is how a tool call ended. */
export type OutputStatus = "success" | "failure" | "cancelled" | "unknown";

/** OverlayMode is what becomes of what a setting does not say. */
export type OverlayMode = "replace" | "merge";

/** Part is one piece of a message. Kind tells which of the fields is set. */
export interface Part {
  kind: PartKind;
  text?: string;
  call?: ToolCall;
  result?: ToolResult;
  attachment?: Attachment;
  /** the provider's own block, opaque to all but its adapter */
  replay?: unknown;
  /** provider, endpoint and model that Replay belongs to */
  route?: string;
  /** only in prompt views; stored nodes are intact */
  prune?: Prune;
}

/** PartKind says what a part of a message holds. */
export type PartKind = "text" | "prose" | "commentary" | "reasoning" | "toolCall" | "toolResult" | "code" | "output" | "error" | "attachment";

/** PinInfo is a node that is kept reachable. */
export interface PinInfo {
  nodeId: NodeID;
  reason?: string;
  atMs: number;
}

/** PluginArtifact is a piece of bulk state. A small one stands here; others are read with artifact/read. */
export interface PluginArtifact {
  name: string;
  digest: Digest;
  size: number;
  data?: string;
}

/** PluginChange is what a reload changes of a plugin. */
export interface PluginChange {
  name: string;
  change: PluginChangeKind;
  /** contributions, as kind and name */
  added?: string[];
  /** likewise */
  removed?: string[];
}

/** PluginChangeKind says what a reload does to a plugin. */
export type PluginChangeKind = "added" | "changed" | "removed" | "unchanged";

/** PluginContribution is something that a plugin adds. */
export interface PluginContribution {
  /** tool, hook, operation, task, prompt, server, process, trigger, extension, toolSwitches, input, moreTools, state, codeExecutor */
  kind: string;
  name: string;
  detail?: string;
}

/** PluginEnableParams switches a plugin on or off, wherever it comes from. */
export interface PluginEnableParams {
  idempotencyKey?: string;
  name: string;
  /** as in plugin/read */
  cwd?: string;
  enabled: boolean;
}

/** PluginExecutable is a program outside of a plugin's directory. */
export interface PluginExecutable {
  /** as the plugin says it */
  name: string;
  /** where it is, after all links */
  path: string;
  digest: Digest;
}

/** PluginFile is a file outside of a plugin's directory that a command of the plugin names. */
export interface PluginFile {
  path: string;
  /** absent: there is no such file */
  digest?: Digest;
}

/** PluginInfo is a plugin as it is now. */
export interface PluginInfo {
  /** that of its directory, if nothing in there names it */
  name: string;
  version?: string;
  description?: string;
  scope: PluginScope;
  dir?: string;
  status: PluginStatus;
  /** of what runs */
  digest?: Digest;
  /** of what is in the directory, where that is something else */
  found?: Digest;
  /** that it came with */
  generation?: number;
  problems?: PluginProblem[];
  /** what confines all its programs, and those of the version before that sessions still have; absent: it has none */
  sandbox?: string;
  process?: PluginProcess;
  /** MCP servers, by name */
  servers?: PluginServer[];
}

/** PluginInputs are inputs for plugins, by plugin id: JSON that only its plugin understands. */
export type PluginInputs = Record<string, unknown>;

/** PluginListParams asks for the plugins that sessions in a directory have. */
export interface PluginListParams {
  /** absent: those of no workspace */
  cwd?: string;
}

/** PluginListResult are plugins, in the order in which they are asked, with those that are not loaded. */
export interface PluginListResult {
  /** of the set that runs */
  generation: number;
  data: PluginInfo[];
  roots: PluginRoot[];
}

/** PluginLogLine is a line that a plugin has said, or that was said of it. */
export interface PluginLogLine {
  atMs: number;
  level: string;
  text: string;
}

/** PluginLogsParams asks for the newest lines that a plugin has said. */
export interface PluginLogsParams {
  name: string;
  /** as in plugin/read */
  cwd?: string;
  /** default 100, at most 1000 */
  limit?: number;
}

/** PluginLogsResult are lines, the oldest first. */
export interface PluginLogsResult {
  data: PluginLogLine[];
}

/** PluginNode is an entry that only its plugin understands. */
export interface PluginNode {
  /** whose it is, if lashd saw to that */
  plugin?: string;
  type: string;
  body: unknown;
}

/** PluginOptions are settings that only their plugin understands. */
export type PluginOptions = Record<string, unknown>;

/** PluginParams names a plugin. */
export interface PluginParams {
  name: string;
  /** of whose plugins it is one; absent: of those of no workspace */
  cwd?: string;
}

/** PluginProblem is a mistake in a file of a plugin, or what else is wrong with it. */
export interface PluginProblem {
  /** in the plugin's directory */
  file?: string;
  line?: number;
  column?: number;
  message: string;
  /** it is loaded all the same */
  warning?: boolean;
}

/** PluginProcess is the process of a plugin. */
export interface PluginProcess {
  /** idle, starting, running, failed, quarantined, resumed */
  state: string;
  /** what confines it */
  sandbox?: string;
  /** why it ended last */
  error?: string;
}

/** PluginReach is what of a plugin reaches beyond its directory. */
export interface PluginReach {
  /** that it may run, as it says them */
  commands?: string[][];
  /** which these are */
  executables?: PluginExecutable[];
  /** outside the plugin that the commands name: a change of one needs a new approval */
  files?: PluginFile[];
  /** commands that may run or load files that approval does not cover, and why, for people */
  uncovered?: string[];
  /** of servers */
  addresses?: string[];
  /** names of variables that it gets from the environment of lashd */
  environment?: string[];
  /** what it may ask of lashd */
  capabilities?: string[];
  /** a hook of it changes the configuration of sessions: approval only to be stricter */
  configures?: boolean;
}

/** PluginReadResult is a plugin with all that a person has to know to approve it. */
export interface PluginReadResult {
  plugin: PluginInfo;
  /** of what is in its directory, or, if that cannot be read, of what runs */
  contributes: PluginContribution[];
  /** likewise */
  reach: PluginReach;
  /** of just that, for plugin/trust; absent: it is what runs */
  digest?: Digest;
}

/** PluginReloadParams has directories looked at now. */
export interface PluginReloadParams {
  idempotencyKey?: string;
  /** whose plugins are looked at besides the user's; absent: all that are known */
  cwd?: string;
  /** only tell what would change */
  dryRun?: boolean;
  /** queue: sessions take it at their next turn, the default; refuse: not while any turn runs */
  whenBusy?: WhenBusy;
}

/** PluginReloadResult is what a reload came to, or would. */
export interface PluginReloadResult {
  duplicate?: boolean;
  generation: number;
  data: PluginChange[];
  /** tools or texts of the prompt change, so that what the model's provider has cached is of no use */
  prefix: boolean;
  /** plugins that are not as they are in their directories */
  problems?: PluginInfo[];
}

/** PluginResult is a plugin after a change. */
export interface PluginResult {
  duplicate?: boolean;
  plugin: PluginInfo;
}

/** PluginRoot is a directory in which plugins are looked for. */
export interface PluginRoot {
  dir: string;
  /** events, or polling */
  watch: string;
  /** why it is not watched by events, or not all of it */
  reason?: string;
}

/** PluginScope says where a plugin comes from. */
export type PluginScope = "builtin" | "user" | "workspace";

/** PluginServer is an MCP server of a plugin. */
export interface PluginServer {
  name: string;
  /** stdio, http */
  transport: string;
  /** idle, starting, ready, failed, quarantined, unreachable, resumed */
  state: string;
  /** that it offers */
  tools: number;
  /** what it says that it is */
  product?: string;
  error?: string;
}

/** PluginSource says what the plugins and tools of a session are like that starts where another one is. */
export type PluginSource = "fork" | "fresh";

/** PluginState is the saved state of a plugin. */
export interface PluginState {
  plugin: string;
  version: string;
  revision: string;
  state?: unknown;
  artifacts?: PluginArtifact[];
}

/** PluginStatus says what has become of a plugin. */
export type PluginStatus = "loaded" | "degraded" | "failed" | "untrusted" | "modified" | "disabled";

/** PluginTrustParams approves what is in a directory of a workspace: exactly these bytes. */
export interface PluginTrustParams {
  idempotencyKey?: string;
  name: string;
  cwd: string;
  /** as plugin/read tells it */
  digest: Digest;
}

/** PluginUntrustParams takes back every approval of a plugin of a workspace. It stops running. */
export interface PluginUntrustParams {
  idempotencyKey?: string;
  name: string;
  cwd: string;
}

/** PointID names a file point: fpt_... */
export type PointID = string;

/** PointKind is what changed files. */
export type PointKind = "turn" | "rewind";

/** PointState is where a file point is. */
export type PointState = "open" | "closed";

/** Policy is the approval configuration of an asker, with what it refers to. */
export interface Policy {
  approval: ApprovalConfig;
  /** paths in the rules are relative to it */
  cwd: string;
  /** of the asker: a session of another driver runs no code cells */
  driver?: string;
}

/** Price is what a million tokens of a model cost, in US dollars. */
export interface Price {
  /** also what is written to a cache */
  input: number;
  output: number;
  /** what is read from a cache */
  cached: number;
}

/** Prune marks a part that a prompt view shortened; its absence means intact. */
export interface Prune {
  state: PruneState;
  /** what is shown instead */
  breadcrumb?: string;
  /** of the part's whole content */
  archive?: Digest;
}

/** PruneState says how much of a part a prompt view still shows. */
export type PruneState = "cleared" | "deleted" | "summarised";

/** QueueCancelParams withdraws an input that has not entered a turn. */
export interface QueueCancelParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  inputId: InputID;
  /** and all that came after it */
  suffix?: boolean;
}

/** QueueCancelResult tells it for each input concerned. */
export interface QueueCancelResult {
  data: CancelledInput[];
  seq: Seq;
  duplicate?: boolean;
}

/** QueueHold is why nothing of a queue starts now. */
export type QueueHold = "empty" | "turnRunning" | "waitingForDecision" | "heldByCommand" | "storageFull" | "retryLater" | "otherDaemon" | "shuttingDown";

/** QueueListParams lists inputs. */
export interface QueueListParams {
  sessionId: SessionID;
  all?: boolean;
}

/** QueueListResult are the inputs that no committed turn has consumed; with all, also the newest that ended. */
export interface QueueListResult {
  data: QueuedInput[];
  hold: QueueHold;
}

/** QueuedInput is an input and where it is. */
export interface QueuedInput {
  inputId: InputID;
  /** the turn that will consume it, or did */
  turnId: TurnID;
  state: InputState;
  input: InputPart[];
  pluginInputs?: PluginInputs;
  boundary?: Boundary;
  /** of a plugin that queued it: its id and its own key; or of a wake */
  source?: string;
  atMs: number;
  /** no person sent it: why it came */
  wake?: QueuedWake;
  /** of a wake that is cancelled because nobody wants it any more: why */
  refused?: WakeRefusal;
  turnOptions?: TurnOptions;
  /** of frames that led to it: it is the task of the last one */
  switches?: number;
  /** a plugin or another session sent it: what its turn is held to, beside the session's own limits */
  ceiling?: Ceiling;
}

/** QueuedWake is what an input has that wakes its session. */
export interface QueuedWake {
  /** its text is that of the input */
  cause: TurnCause;
  delivery: Delivery;
  /** what may share a turn with others of this key */
  merge?: string;
  expiresAtMs?: number;
  /** what wakes in an order */
  stream?: string;
  /** in its stream */
  ordinal?: number;
}

/** ReasoningSpec says how a model's reasoning is controlled. */
export interface ReasoningSpec {
  efforts: string[];
  default?: string;
  mandatory?: boolean;
}

/** Relation is where a session comes from. */
export interface Relation {
  kind: RelationKind;
  /** of a child */
  parent?: SessionID;
  /** of a child */
  cause?: string;
  /** of a fork */
  source?: ForkSource;
  /** For which session a plugin or a task asked for it: their plugins may name it. */
  askedBy?: SessionID;
  /** Of a child: it is there for a moment, until who made it deletes it. What a daemon leaves unfinished of one, the next one deletes. */
  temporary?: boolean;
}

/** RelationKind says how a session came to be. */
export type RelationKind = "root" | "child" | "fork";

/** Replay says whether a call that was started, and whose result was lost, may be made again. */
export type Replay = "never" | "safe" | "idempotent";

/** RetryAdvice says what a client should do about an error. */
export type RetryAdvice = "now" | "reload" | "never";

/** RetryStatus announces that a failed model call will be tried again after a wait. Interrupting the turn ends the wait. */
export interface RetryStatus {
  waitMs: number;
  /** the number of the next attempt, of those that count */
  attempt: number;
  maxAttempts: number;
  /** the failed attempt used up one of maxAttempts; throttling and an unreachable server use a budget of time instead */
  counted?: boolean;
  /** the code of the error */
  reason: string;
  /** HTTP status of the answer; absent: there was no answer */
  status?: number;
  /** the error, without keys */
  message?: string;
}

/** RewindFiles says what a rewind is about. */
export type RewindFiles = "also" | "only";

/** Role says who speaks in a message. */
export type Role = "user" | "assistant" | "system" | "event";

/** of an event in its session: 1, 2, 3, ... without gaps */
export type Seq = number;

/** SeqResult answers a change that has nothing more to say. */
export interface SeqResult {
  seq: Seq;
  duplicate?: boolean;
}

/** ServerBackupParams says where a copy of all that is stored is put. */
export interface ServerBackupParams {
  /** an absolute path, of which nothing is there yet but its parent */
  dir: string;
}

/** ServerBackupResult is a copy that was verified. It is whole unless Missing or Problems are given. */
export interface ServerBackupResult {
  /** can be used as a data directory */
  dir: string;
  /** files of the data directory that are missing or damaged, and so not in the copy */
  missing?: string[];
  /** damaged rows of the database, which the copy has as they are */
  problems?: string[];
}

/** ServerEvent is the params of server/event. Each tells how its subject is now, so a client that is slow gets only the newest of each subject, in the order in which they changed. */
export interface ServerEvent {
  atMs: number;
  type: ServerEventType;
  /** of both session types */
  sessionId?: SessionID;
  /** of session/changed */
  session?: Session;
  /** of store/changed: ok, or what it does not do, and why */
  store?: string;
  /** of plugin/changed; without status: it is gone */
  plugin?: PluginInfo;
  /** of both trigger types */
  trigger?: Trigger;
}

/** ServerEventType names news of the daemon as a whole. */
export type ServerEventType = "session/changed" | "session/deleted" | "store/changed" | "plugin/changed" | "trigger/changed" | "trigger/deleted";

/** Session is what is known of a session without reading its history. */
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
  /** turns completed */
  turnIndex: number;
  /** its own, by turns that have ended; usage/read has the ledger */
  usage: Usage;
  createdAtMs: number;
  updatedAtMs: number;
  archived?: boolean;
}

/** SessionArchiveParams puts a session away, or takes it out again. */
export interface SessionArchiveParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  undo?: boolean;
}

/** SessionAttachParams subscribes the connection to a session. */
export interface SessionAttachParams {
  sessionId: SessionID;
  /** replay what came after; absent: a snapshot, then what comes */
  afterSeq?: Seq;
  /** the epoch in which AfterSeq was seen */
  epoch?: number;
}

/** SessionAttachResult is the session as it is; every durable event after Seq follows, in order and once. */
export interface SessionAttachResult {
  session: Session;
  /** the newest 200, or those of the last 4 MiB; absent in a replay */
  items?: Item[];
  nextCursor?: string;
  /** with the text so far */
  openItems?: Item[];
  /** open ones, also of sessions that work for this one */
  decisions: Decision[];
  queue: QueuedInput[];
  tasks: Task[];
  /** the running turn */
  turnId?: TurnID;
  /** inputs that it has taken in, and that are no items yet */
  entered?: QueuedInput[];
  seq: Seq;
  /** AfterSeq cannot be replayed; this answer is a snapshot instead */
  gap?: Gap;
}

/** SessionCompactParams asks for a summary of history. */
export interface SessionCompactParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  /** for whoever writes the summary */
  instructions?: string;
}

/** SessionCompactResult is the session after it. Compacted is false if no plugin had anything to summarise. */
export interface SessionCompactResult {
  compacted: boolean;
  /** that wrote the summary */
  plugin?: string;
  head: Head;
  seq: Seq;
  duplicate?: boolean;
}

/** SessionConfigureParams changes settings, from the next turn on. Absent fields stay as they are. */
export interface SessionConfigureParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  model?: string;
  prompt?: string;
  budget?: Budget;
  approval?: ApprovalConfig;
  generation?: GenerationOptions;
  /** absent: replace */
  generationMode?: OverlayMode;
  options?: PluginOptions;
  unknownOutcome?: UnknownOutcomeRule;
  /** absent: as it is */
  drain?: DrainPolicy;
}

/** SessionDiffParams asks what a session did to files, or one turn or file point of it. */
export interface SessionDiffParams {
  sessionId: SessionID;
  turnId?: TurnID;
  pointId?: PointID;
  cursor?: string;
  /** of files; 1 to 500; absent: 100 */
  limit?: number;
}

/** SessionDiffResult is a page of changed files in the order of their paths. It says what was done, not what files are now. */
export interface SessionDiffResult {
  data: FileDiff[];
  /** that the changes are of */
  points: FilePoint[];
  nextCursor?: string;
}

/** SessionExtensionParams is what a client sends to the session's protocol. */
export interface SessionExtensionParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  extension: unknown;
}

/** SessionForkParams makes a new session that shares this one's history. */
export interface SessionForkParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  /** on the active path, or pinned; absent: the leaf */
  atNode?: NodeID;
  title?: string;
  toolCatalog?: ForkCatalog;
}

/** ses_... */
export type SessionID = string;

/** SessionListParams chooses sessions, newest first. */
export interface SessionListParams {
  cwd?: string;
  archived?: boolean;
  /** also sessions that work for others */
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

/** SessionMutationParams names a session to change. */
export interface SessionMutationParams {
  idempotencyKey?: string;
  sessionId: SessionID;
}

/** SessionNewParams creates a session, whole or not at all. Settings that are absent are those of the session where it starts; if it starts with nothing, those of the session that it works for; if there is none, the daemon's, or, if a plugin asks, those of the session it asks from. */
export interface SessionNewParams {
  idempotencyKey?: string;
  /** chosen by the client; never used before */
  sessionId?: SessionID;
  /** the workspace: an absolute path to a directory; absent: as where it starts, or as whom it works for */
  cwd?: string;
  title?: string;
  driver?: string;
  /** a name from model/list */
  model?: string;
  prompt?: string;
  budget?: Budget;
  approval?: ApprovalConfig;
  generation?: GenerationOptions;
  /** absent: replace */
  generationMode?: OverlayMode;
  options?: PluginOptions;
  unknownOutcome?: UnknownOutcomeRule;
  drain?: DrainPolicy;
  /** what it may use; never more than its parent, or where it starts */
  authority?: Authority;
  /** absent: with nothing */
  start?: SessionStart;
  /** absent: fork */
  pluginSource?: PluginSource;
  /** root, or child with its parent; absent: as the authority says */
  relation?: Relation;
  /** that its history begins with, or goes on with where it starts */
  nodes?: NodeBody[];
  /** under which its parent's ledger shows what it uses; absent: child */
  usageLabel?: string;
  /** for the plugin that takes it first */
  firstTurnInput?: InputPart[];
  /** that this client brings, as with session/setOverlay */
  mcpServers?: MCPServers;
}

/** SessionNewResult is the session as created. The connection is attached to it. */
export interface SessionNewResult {
  sessionId: SessionID;
  session: Session;
  seq: Seq;
  duplicate?: boolean;
}

/** SessionOverlayParams replaces what clients add to a session: the newest one's is there. One that adds nothing leaves what another adds while it is connected. */
export interface SessionOverlayParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  /** absent: true */
  includeBaseTools?: boolean;
  tools?: ClientTool[];
  prompt?: string;
  /** that come and go with the client; absent: none */
  mcpServers?: MCPServers;
  /** the rest goes with the client, too, when it has been away for half a minute */
  whileConnected?: boolean;
}

/** SessionOverlayResult is the catalog's state after an overlay was set. */
export interface SessionOverlayResult {
  tools: ToolState;
  seq: Seq;
  duplicate?: boolean;
}

/** SessionParams names a session. */
export interface SessionParams {
  sessionId: SessionID;
}

/** SessionPointsResult lists file points in the order in which they were made. */
export interface SessionPointsResult {
  data: FilePoint[];
}

/** SessionReadParams reads a page of a session's items, backwards from a cursor. */
export interface SessionReadParams {
  sessionId: SessionID;
  /** absent: from the newest */
  cursor?: string;
  /** nodes, 1 to 500; absent: 200. A page of large ones ends earlier, after 4 MiB */
  limit?: number;
}

/** SessionReadResult is a page of items in order, and where the older ones are. */
export interface SessionReadResult {
  session: Session;
  data: Item[];
  nextCursor?: string;
}

/** SessionRewindParams moves the leaf to an ancestor: what came after it stays, pinned. With files it brings back, too, or only, what the files of the workspace were before the first turn that is left behind. */
export interface SessionRewindParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  /** the new leaf */
  toNode?: NodeID;
  /** instead: to before this turn */
  toTurn?: TurnID;
  /** instead, for files only: to before this file point */
  toPoint?: PointID;
  /** absent: they stay as they are */
  files?: RewindFiles;
  /** only tells what would be done */
  dryRun?: boolean;
  /** also where something would be lost; what cannot be brought back is left as it is */
  force?: boolean;
}

/** SessionRewindResult tells what a rewind takes out of sight, and what it does to files. */
export interface SessionRewindResult {
  head: Head;
  /** the leaf as it was */
  pinned?: NodeID;
  /** how many were left behind */
  nodes: number;
  seq: Seq;
  /** a rewind to it takes back what was done to files; absent: nothing was */
  pointId?: PointID;
  /** that change */
  files?: FileRewind[];
  duplicate?: boolean;
}

/** SessionRule says whether an operation is called with a session. */
export type SessionRule = "required" | "optional" | "forbidden";

/** SessionSetTitleParams names a session for people. */
export interface SessionSetTitleParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  title: string;
}

/** SessionStart is what a new session begins with: with nothing, or with the history of another. */
export interface SessionStart {
  kind: StartKind;
  /** of an existing session, or whose snapshot it is */
  sessionId?: SessionID;
  /** its name */
  snapshot?: string;
}

/** SessionState is what a session is doing. */
export type SessionState = "idle" | "running" | "requiresAction";

/** SessionWaitParams waits until a session is idle: no turn runs and none is queued. */
export interface SessionWaitParams {
  sessionId: SessionID;
  /** absent: no limit */
  timeoutMs?: number;
}

/** SessionWaitResult is the state at the end of the wait. */
export interface SessionWaitResult {
  state: SessionState;
  seq: Seq;
}

/** ShutdownParams says how much is to end. */
export interface ShutdownParams {
  /** the daemon too; turns are resumed when it starts again */
  daemon?: boolean;
}

/** SnapshotInfo is a state of a session that has a name: a node of its history, with what plugins and tools were like then. */
export interface SnapshotInfo {
  name: string;
  /** it stays reachable */
  nodeId: NodeID;
  atMs: number;
  /** of history before it */
  nodes: number;
  /** that plugins, tools and monitors take; snapshot/create does not tell */
  bytes?: number;
}

/** SnapshotListResult are the snapshots of a session, by name. */
export interface SnapshotListResult {
  data: SnapshotInfo[];
}

/** SnapshotMutationParams makes, restores or deletes a snapshot. */
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

/** SnapshotPreviewResult is what a restore would change. */
export interface SnapshotPreviewResult {
  snapshot: SnapshotInfo;
  /** the session as it is */
  now: SnapshotSide;
  /** as it would be */
  then: SnapshotSide;
}

/** SnapshotReadResult is what a snapshot holds. */
export interface SnapshotReadResult {
  snapshot: SnapshotInfo;
  /** by plugin */
  plugins: PluginState[];
  /** of the plugins when they were captured */
  fingerprint: string;
  /** absent: nobody had decided anything */
  tools?: ToolState;
}

/** SnapshotRestoreResult is the session's new head. */
export interface SnapshotRestoreResult {
  head: Head;
  /** the leaf as it was */
  pinned?: NodeID;
  seq: Seq;
  duplicate?: boolean;
}

/** SnapshotResult is a snapshot that was made. */
export interface SnapshotResult {
  snapshot: SnapshotInfo;
  seq: Seq;
  duplicate?: boolean;
}

/** SnapshotSide is a session on one side of a restore. */
export interface SnapshotSide {
  /** its leaf */
  nodeId: NodeID;
  /** of history that the other side does not have */
  nodes: number;
  /** what the newest of these show, of at most 100 */
  items: Item[];
  /** by plugin */
  plugins: PluginState[];
  /** what was decided about them */
  tools: ToolState;
  /** a restore stops those that run */
  monitors: Monitor[];
  /** of what the code executor keeps */
  execution?: Digest;
}

/** StartKind names a way to begin. */
export type StartKind = "empty" | "currentSession" | "existingSession" | "snapshot";

/** StatusResult is what server/status answers. */
export interface StatusResult {
  version: string;
  pid: number;
  uptimeMs: number;
  dataDir: string;
  socket?: string;
  /** stored */
  sessions: number;
  /** in memory */
  loadedSessions: number;
  runningTurns: number;
  openDecisions: number;
  connections: number;
  /** ok, or what is wrong, such as a loss of commits that nobody has acknowledged with lashd doctor --fix */
  store: string;
}

/** StopReason is why a model stopped. */
export type StopReason = "stop" | "toolUse" | "outputLimit" | "contextOverflow" | "contentFilter" | "providerError" | "cancelled" | "unknown";

/** Subagent says for whom a session works, and how deep it is below a session of a person. */
export interface Subagent {
  parentSessionId: SessionID;
  capability?: string;
  depth: number;
  maxDepth: number;
}

/** Task is work that outlives a turn. It is what its events come to. */
export interface Task {
  taskId: TaskID;
  sessionId: SessionID;
  spec: TaskSpec;
  origin: TaskOrigin;
  /** sessions that may see it besides its own and its origin */
  observers?: SessionID[];
  state: TaskState;
  /** for what, while it is idle */
  waiting?: string;
  /** 1 is the first; 0: none was begun */
  attempt: number;
  incarnation?: string;
  /** of an external one, outside */
  ref?: string;
  cancelRequested?: TaskRequest;
  abandonRequested?: TaskRequest;
  /** what started it is over, and it goes on */
  callerDeparted?: boolean;
  /** of a final state */
  outcome?: TaskOutcome;
  /** of its newest event */
  ordinal: number;
  /** grows with every change of any task: a cursor for task/list */
  change?: number;
  /** it was let go: of its spec, its events and its output only this is left */
  pruned?: boolean;
  /** of the spec of a pruned one */
  fingerprint?: string;
  createdAtMs: number;
  startedAtMs?: number;
  updatedAtMs: number;
  endedAtMs?: number;
}

/** TaskAdmission tells how many tasks of the daemon are at work, and why others are not. */
export interface TaskAdmission {
  working: number;
  limit: number;
  /** for a place */
  waiting: number;
}

/** TaskCancelAllParams asks that all tasks of a session end. */
export interface TaskCancelAllParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  /** absent: of any */
  kind?: TaskKind;
  /** these go on */
  keep?: TaskID[];
  reason?: string;
}

/** TaskCancelParams asks that a task ends. It may still complete. */
export interface TaskCancelParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  taskId: TaskID;
  reason?: string;
}

/** TaskCancelPolicy is how a task is ended before its time. */
export type TaskCancelPolicy = "abortLocal" | "cooperative" | "external";

/** TaskChild is the turn of a session that works for the one that starts the task. It is the same turn however often the task is begun. */
export interface TaskChild {
  /** the child; never that of another work */
  sessionId: SessionID;
  /** never used before */
  turnId: TurnID;
  /** the path of its name, such as /root/tests */
  agent?: string;
  input?: InputPart[];
  /** how the child is made; absent: it is there already */
  new?: SessionNewParams;
  /** a task of the same session that has to be over before the turn begins */
  after?: TaskID;
  /** JSON Schema of what the turn comes to; absent: anything. What does not fit is asked for once more */
  outputSchema?: unknown;
}

/** TaskClosePolicy is what becomes of a task when its session is closed. */
export type TaskClosePolicy = "keep" | "cancel" | "transfer";

/** TaskCompleteParams tells how a task ended that runs elsewhere, or gives up one that is lost. */
export interface TaskCompleteParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  taskId: TaskID;
  outcome: TaskOutcome;
}

/** TaskEnd is how a task ended. */
export type TaskEnd = "exited" | "signaled" | "stopped" | "completed" | "failed" | "abandoned";

/** TaskEvent is a thing that happened to a task. A task is what its events come to, in their order. */
export interface TaskEvent {
  /** 1, 2, 3, ... in its task */
  ordinal: number;
  atMs: number;
  kind: TaskEventKind;
  /** of created and transferred: whose the task is from then on; of an observer: which */
  sessionId?: SessionID;
  spec?: TaskSpec;
  origin?: TaskOrigin;
  /** of started */
  incarnation?: string;
  /** of waiting and requests */
  reason?: string;
  by?: string;
  ref?: string;
  /** of an event of the task's own */
  name?: string;
  payload?: unknown;
  /** likewise: told again with the same key, it does not happen again */
  key?: string;
  outcome?: TaskOutcome;
}

/** TaskEventKind is what happened to a task. */
export type TaskEventKind = "created" | "started" | "waiting" | "resumed" | "externalRef" | "cancelRequested" | "abandonRequested" | "callerDeparted" | "observerAdded" | "observerRemoved" | "transferred" | "event" | "ended";

/** TaskEventType is an event of its own that a task may tell of. */
export interface TaskEventType {
  name: string;
  /** JSON Schema of its payload; absent: anything */
  schema?: unknown;
  /** it wakes the session */
  wake?: TaskWake;
}

/** TaskEvidence is why a task is given up as abandoned. */
export interface TaskEvidence {
  writer: TaskWriter;
  /** of the daemon in which it ran */
  incarnation?: string;
  attempts: number;
  reason: string;
}

/** tsk_..., or chosen by whoever starts it */
export type TaskID = string;

/** TaskKind is what kind of work a task is. */
export type TaskKind = "command" | "monitor" | "subagent" | "observer" | "other";

/** TaskListParams asks for tasks, in the order of their newest changes. */
export interface TaskListParams {
  /** those that it may see; absent: all */
  sessionId?: SessionID;
  kind?: TaskKind;
  /** only those that are not over */
  live?: boolean;
  /** also those that are not listed */
  hidden?: boolean;
  /** of an earlier answer: only what has changed since */
  cursor?: string;
  /** default 100, at most 1000 */
  limit?: number;
}

/** TaskListResult is a page of tasks. Its cursor is always there: asked with later, it gives what has changed since. */
export interface TaskListResult {
  data: Task[];
  nextCursor: string;
  /** there are more now */
  more?: boolean;
  admission: TaskAdmission;
}

/** TaskLosers is what becomes of the tasks that are still live when a wait ends. */
export type TaskLosers = "keep" | "cancel";

/** TaskObserveParams lets another session see a task, or no longer. */
export interface TaskObserveParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  taskId: TaskID;
  observer: SessionID;
  remove?: boolean;
}

/** TaskOrigin is who started a task. */
export interface TaskOrigin {
  sessionId: SessionID;
  turnId?: TurnID;
  callId?: CallID;
  plugin?: string;
  clientId?: ClientID;
  /** what it may cause others to do, beside the limits of its session; absent: all that the session may */
  ceiling?: Ceiling;
}

/** TaskOutcome is how a task ended, as far as it is known. */
export interface TaskOutcome {
  kind: TaskEnd;
  exitCode?: number;
  /** such as SIGKILL */
  signal?: string;
  /** a client id, or internal:<subject> */
  by?: string;
  value?: unknown;
  code?: string;
  message?: string;
  evidence?: TaskEvidence;
}

/** TaskOutputParams asks for a part of what a task has put out. */
export interface TaskOutputParams {
  sessionId: SessionID;
  taskId: TaskID;
  /** in bytes; negative: from the end */
  offset?: number;
  /** in bytes; default 64 KiB, at most 1 MiB */
  limit?: number;
}

/** TaskOutputResult is a part of an output. Bytes that are no UTF-8 are replaced in it; the beginning of a character of which the rest is not there yet comes with the next part. */
export interface TaskOutputResult {
  text: string;
  /** of the first byte */
  offset: number;
  nextOffset: number;
  /** of all that there is now */
  size: number;
  /** there was too much: what came later is not kept */
  full?: boolean;
  /** the task is over: nothing will be added */
  ended: boolean;
}

/** TaskParentEnd is what becomes of a task when the task or the turn that started it ends. */
export type TaskParentEnd = "detach" | "cancel";

/** TaskPruneParams lets go of what is stored of tasks that are over, a thousand at most; the answer holds what is left of each. */
export interface TaskPruneParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  /** ended before; absent: all that are over */
  beforeAtMs?: number;
}

/** TaskReadParams asks for a task and what happened to it. */
export interface TaskReadParams {
  sessionId: SessionID;
  taskId: TaskID;
  /** ordinal of an event: only those after it */
  after?: number;
  /** default 100, at most 1000 */
  limit?: number;
}

/** TaskReadResult is a task and a page of its events, the oldest first. */
export interface TaskReadResult {
  task: Task;
  events: TaskEvent[];
}

/** TaskRecovery is what becomes of a task whose daemon ended while it ran. It is declared when the task is created. */
export type TaskRecovery = "rerunnable" | "ownerBound" | "external";

/** TaskRequest is somebody's wish about a task. */
export interface TaskRequest {
  /** a client id, or internal:<subject> */
  by: string;
  reason?: string;
  atMs: number;
}

/** TaskResult is a task after a change. */
export interface TaskResult {
  task: Task;
  /** it had been started before, with the same spec */
  existing?: boolean;
  seq: Seq;
  duplicate?: boolean;
}

/** TaskRule is when a wait for several tasks ends. */
export type TaskRule = "all" | "first" | "firstSuccess";

/** TaskShell is a command of the shell. */
export interface TaskShell {
  script: string;
  /** absolute; empty: that of the session */
  workdir?: string;
  env?: Record<string, string>;
  /** it gets a terminal */
  pty?: TaskTerminal;
  /** it outlives lashd, which sees it end, and stops it when it is asked to; of an external command */
  detach?: boolean;
}

/** TaskSignalParams sends something to a task that it declares to take. */
export interface TaskSignalParams {
  sessionId: SessionID;
  taskId: TaskID;
  /** of a command: stdin {text}, closeStdin, interrupt; of one with a terminal also resize {columns, rows} */
  name: string;
  payload?: unknown;
}

/** TaskSignalType is something that may be sent to a task. */
export interface TaskSignalType {
  name: string;
  schema?: unknown;
}

/** TaskSpec is what a task is started with. It never changes; the same id with another one is a conflict. */
export interface TaskSpec {
  kind: TaskKind;
  /** for people */
  label?: string;
  recovery: TaskRecovery;
  /** of a rerunnable one; 0: three */
  maxAttempts?: number;
  /** empty: abortLocal */
  cancel?: TaskCancelPolicy;
  /** empty: keep */
  close?: TaskClosePolicy;
  /** empty: detach */
  parentEnd?: TaskParentEnd;
  /** the task that it is a part of */
  parent?: TaskID;
  /** not listed, no events */
  hidden?: boolean;
  /** of each attempt; 0: none */
  timeoutMs?: number;
  /** of a command or a monitor */
  command?: TaskShell;
  subagent?: TaskChild;
  /** whose work it is */
  plugin?: string;
  /** of that plugin, which runs it */
  handler?: string;
  /** for whoever runs it */
  payload?: unknown;
  /** that it may tell of */
  events?: TaskEventType[];
  /** that may be sent to it */
  signals?: TaskSignalType[];
  /** its end wakes its session */
  ended?: TaskWake;
}

/** TaskStartParams starts background work in a session. */
export interface TaskStartParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  /** absent: a new one. The same id with the same spec is the task that there is */
  taskId?: TaskID;
  spec: TaskSpec;
}

/** TaskState is where a task is. The last four are final. */
export type TaskState = "pending" | "running" | "idle" | "cancelRequested" | "completed" | "failed" | "cancelled" | "abandoned";

/** TaskTerminal is the size of a terminal. */
export interface TaskTerminal {
  columns: number;
  rows: number;
}

/** TaskTransferParams gives tasks to another session: all of them, or none. */
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
  /** absent: none. A timeout changes nothing */
  timeoutMs?: number;
}

/** TaskWaitResult is how far tasks are when a wait ends. */
export interface TaskWaitResult {
  /** those that are over, in the order in which they ended */
  settled: Task[];
  live: Task[];
  timedOut?: boolean;
}

/** TaskWake is how an event wakes its session. */
export interface TaskWake {
  /** empty: afterTurn */
  delivery?: Delivery;
  /** events of one key that wait together become one turn */
  merge?: string;
  /** what the model is told; empty: the event itself */
  text?: string;
}

/** TaskWriter is who found that a task is abandoned. */
export type TaskWriter = "ownerDrain" | "sweep" | "reconciledRequest" | "gaveUp";

/** TasksResult is tasks after a change. */
export interface TasksResult {
  data: Task[];
  seq: Seq;
  duplicate?: boolean;
}

/** ToolActivation says who may call a tool. */
export type ToolActivation = "always" | "internal";

/** ToolApplyStateParams replaces all settings, if the generation is still current. Tools that the state does not name are left out until their source is asked again; to switch one off for good, say that it is no member. */
export interface ToolApplyStateParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  state: ToolState;
}

/** ToolAvailability is how far a tool is open to the model. Each level has what the ones before it have. */
export type ToolAvailability = "off" | "searchable" | "callable" | "showcased";

/** ToolCall is a call as the model made it, or as another call did. */
export interface ToolCall {
  callId: CallID;
  name: string;
  args: unknown;
  /** the call that makes this one; absent: the model does */
  parent?: CallID;
}

/** ToolCallParams runs a tool without a model. The session's approval rules hold. */
export interface ToolCallParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  name: string;
  args?: unknown;
}

/** ToolCallRecord is one tool call of a turn, from start to result. */
export interface ToolCallRecord {
  callId: CallID;
  name: string;
  args: unknown;
  output: ToolOutput;
  durationMs: number;
  /** the call, or the code cell, that made this one; absent: the model did */
  parent?: CallID;
  /** position in which it completed within its batch */
  order: number;
}

/** ToolCallResult is what a tool call came to. */
export interface ToolCallResult {
  callId: CallID;
  output: ToolOutput;
  durationMs: number;
  duplicate?: boolean;
}

/** ToolCompleteParams completes a call that answered that it is pending. The key is the one that its tool took. */
export interface ToolCompleteParams {
  idempotencyKey?: string;
  key: CompletionKey;
  output: ToolOutput;
}

/** ToolCompleteResult tells whether this completion counts: the first one does, unless the wait was over. */
export interface ToolCompleteResult {
  accepted: boolean;
  seq: Seq;
  duplicate?: boolean;
}

/** ToolContract is what must be known to run a tool. */
export interface ToolContract {
  replay: Replay;
  /** not beside other calls of its batch */
  serial?: boolean;
  /** 0: no limit of its own */
  timeoutMs?: number;
  /** of failures that say that it is safe; only where Replay is not never */
  retry?: ToolRetry;
  /** may answer pending */
  mayDefer?: boolean;
  /** arguments that a person's standing answer does not look at, such as the content of a file; absent: it looks at all */
  varying?: string[];
  /** JSON Schema of the arguments; absent: the manifest's, or any object */
  input?: unknown;
  /** JSON Schema of the result's value; absent: not known */
  output?: unknown;
  /** of arguments */
  examples?: unknown[];
}

/** ToolFailure is why a tool call failed. */
export interface ToolFailure {
  class: FailureClass;
  code: string;
  message: string;
  source: FailureSource;
  /** trying again is safe and may help */
  retry?: boolean;
  /** not before */
  retryAfterMs?: number;
  raw?: unknown;
}

/** ToolKind groups tools for display, in ACP's words. */
export type ToolKind = "read" | "edit" | "delete" | "move" | "search" | "execute" | "think" | "fetch" | "other";

/** ToolListResult is the catalog: every tool of the session, members or not. */
export interface ToolListResult {
  data: ToolRecord[];
  generation: number;
}

/** ToolManifest is what is cheap to know of a tool. The model is told its name, description and input. */
export interface ToolManifest {
  /** what the tool is known by for ever; absent: its name */
  id?: string;
  /** what the model calls it; unique in a session */
  name: string;
  description: string;
  /** JSON Schema of the arguments; absent: any object */
  input?: unknown;
  /** how clients should show it */
  kind?: ToolKind;
  /** absent: always */
  activation?: ToolActivation;
  /** another tool that does the same in another way: approval rules that ask or deny for that one hold for this one too */
  like?: string;
  /** how the tool appears elsewhere, such as in a language */
  bindings?: Record<string, unknown>;
}

/** ToolOutput is what a tool call came to. */
export interface ToolOutput {
  status: OutputStatus;
  /** what the model reads */
  text?: string;
  /** structured result for clients and code */
  value?: unknown;
  failure?: ToolFailure;
  /** the whole output, where Text is a part of it */
  artifact?: ArtifactRef;
  /** what the call changed in the workspace */
  change?: FileChange;
  /** it was tried as often as it may be */
  exhausted?: boolean;
  /** what became of what the call wanted done; lashd says so */
  intents?: IntentOutcome[];
}

/** ToolRecord is a tool of a session. */
export interface ToolRecord {
  id?: string;
  name: string;
  description: string;
  input?: unknown;
  kind?: ToolKind;
  activation?: ToolActivation;
  like?: string;
  bindings?: Record<string, unknown>;
  /** the plugin or client that provides it; empty: none does */
  source: string;
  contract: ToolContract;
  /** changes when manifest or contract do */
  revision: Digest;
  estimatedTokens: number;
  /** in the catalog the model sees */
  member: boolean;
  /** nothing provides it any more; its settings are kept */
  orphan: boolean;
  /** described in the prompt */
  document: boolean;
  availability: ToolAvailability;
}

/** ToolRespondParams is a client's answer to tool/requested. Ack says that the client has begun: from then on, a client that disappears leaves an unknown outcome behind instead of a failure. */
export interface ToolRespondParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  callId: CallID;
  ack?: boolean;
  output?: ToolOutput;
}

/** ToolRespondResult tells whether this answer counts. */
export interface ToolRespondResult {
  accepted: boolean;
  duplicate?: boolean;
}

/** ToolResult is the answer to a call, as it stands in the conversation. */
export interface ToolResult {
  callId: CallID;
  name: string;
  output: ToolOutput;
  durationMs?: number;
  /** position in which it completed within its batch */
  order: number;
}

/** ToolRetry says how often a call is tried, and the time between two attempts, which doubles from base to cap. */
export interface ToolRetry {
  /** the first included */
  maxAttempts: number;
  baseMs: number;
  capMs: number;
}

/** ToolSetAvailabilityParams sets how far tools are open to the model; without an availability, it takes that back. */
export interface ToolSetAvailabilityParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  /** absent: whatever is current */
  generation?: number;
  names: string[];
  availability?: ToolAvailability;
}

/** ToolSetMembershipParams says which tools the model may call. */
export interface ToolSetMembershipParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  /** absent: whatever is current */
  generation?: number;
  members: Record<string, boolean>;
}

/** ToolSetting is what a session decided about one tool. It does not say where the tool comes from: whoever offers the same id later gets the same settings. */
export interface ToolSetting {
  /** as last seen, without the schema */
  manifest: ToolManifest;
  /** nothing provides it any more */
  orphaned?: boolean;
  /** in the catalog the model sees; absent: true */
  member?: boolean;
  /** as tool/setAvailability set it */
  override?: ToolAvailability;
}

/** ToolState is the saved state of a session's tools. Generation grows with each change, and a change that names an older generation is refused. */
export interface ToolState {
  generation: number;
  /** by id */
  tools: Record<string, ToolSetting>;
}

/** ToolStateResult is the state of a session's tools. */
export interface ToolStateResult {
  state: ToolState;
  seq: Seq;
  duplicate?: boolean;
}

/** Trigger says what is to be done when something happens outside. */
export interface Trigger {
  triggerId: TriggerID;
  key: string;
  /** who owns it, and with whom it goes; absent: the user */
  sessionId?: SessionID;
  /** grows with each update */
  revision: number;
  enabled: boolean;
  /** why it is not at work, or not as it should be */
  problem?: string;
  createdAtMs: number;
  updatedAtMs: number;
  /** when its schedule is due */
  nextAtMs?: number;
  source: TriggerSource;
  filter?: unknown;
  action: TriggerAction;
}

/** TriggerAction is what is done when it happens. The model is told the text, and what has happened. */
export interface TriggerAction {
  kind: TriggerActionKind;
  text: string;
  /** of wakeSession; absent: the owner */
  sessionId?: SessionID;
  /** likewise, when the model is told; absent: afterTurn */
  delivery?: Delivery;
  /** likewise: what may share a turn with others of this key; absent: with those of the same trigger */
  merge?: string;
  /** of newSession */
  session?: TriggerSession;
}

/** TriggerActionKind is what a trigger does. */
export type TriggerActionKind = "wakeSession" | "newSession";

/** TriggerDeleteParams ends a trigger. What has occurred before is still delivered. */
export interface TriggerDeleteParams {
  idempotencyKey?: string;
  key: string;
  sessionId?: SessionID;
  /** refused if it is another one by now */
  triggerId?: TriggerID;
  /** refused if it was updated since */
  revision?: number;
}

/** TriggerDelivery is what an occurrence is to one trigger. */
export interface TriggerDelivery {
  triggerId: TriggerID;
  key: string;
  state: DeliveryState;
  /** that is woken, or begun */
  sessionId: SessionID;
  turnId?: TurnID;
  reason?: string;
  /** of the state */
  atMs: number;
}

/** TriggerEmitParams tells that something has happened. */
export interface TriggerEmitParams {
  idempotencyKey?: string;
  /** one of trigger/types */
  type: string;
  /** of whose plugins it is one; absent: of those of no workspace */
  cwd?: string;
  /** which one of that type it happened to */
  sourceKey?: string;
  /** what makes it the same occurrence, such as the id of a mail; absent: it is another one */
  occurrenceKey?: string;
  /** an object that fits the type's schema; absent: an empty one */
  payload?: unknown;
}

/** TriggerEmitResult is what the occurrence is to bring about. It is durable; trigger/history tells what has come of it. */
export interface TriggerEmitResult {
  occurrence: Occurrence;
  duplicate?: boolean;
}

/** TriggerHistoryParams chooses occurrences, newest first. */
export interface TriggerHistoryParams {
  /** those that are something to it; absent: all */
  triggerId?: TriggerID;
  /** absent: all */
  type?: string;
  cursor?: string;
  /** 1 to 100; absent: 20 */
  limit?: number;
}

/** TriggerHistoryResult is a page of occurrences. Of each type the newest thousands are kept. */
export interface TriggerHistoryResult {
  data: Occurrence[];
  nextCursor?: string;
}

/** trg_...; another one for what is deleted and made again */
export type TriggerID = string;

/** TriggerListParams chooses triggers, in the order in which they were made. */
export interface TriggerListParams {
  /** whose; absent: all */
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

/** TriggerRegisterParams makes a trigger. Its key is its owner's own. */
export interface TriggerRegisterParams {
  idempotencyKey?: string;
  key: string;
  /** whose it is; absent: the user's */
  sessionId?: SessionID;
  /** absent: true */
  enabled?: boolean;
  source: TriggerSource;
  filter?: unknown;
  action: TriggerAction;
}

/** TriggerResult is the trigger as it is then, or was before it was deleted. */
export interface TriggerResult {
  trigger: Trigger;
  duplicate?: boolean;
}

/** TriggerSession are the settings of a session that a trigger begins. What is absent is as the daemon is configured. */
export interface TriggerSession {
  /** an absolute path to a directory */
  cwd: string;
  title?: string;
  driver?: string;
  model?: string;
  prompt?: string;
  budget?: Budget;
  approval?: ApprovalConfig;
  options?: PluginOptions;
}

/** TriggerSource is what a trigger waits for. */
export interface TriggerSource {
  /** one of trigger/types */
  type: string;
  /** which one of that type, such as a mailbox; absent: any */
  key?: string;
  /** of cron.tick */
  cron?: CronSource;
  /** of file.changed */
  file?: FileSource;
}

/** TriggerType is something that may happen outside, as a plugin or lashd itself has declared it. */
export interface TriggerType {
  /** such as mail.new */
  type: string;
  resourceType: string;
  description?: string;
  /** JSON Schema of what comes with it; absent: any object */
  payload?: unknown;
  /** lashd itself tells when it happens; trigger/emit does not take it */
  watched?: boolean;
}

/** TriggerTypesParams asks what may happen. */
export interface TriggerTypesParams {
  /** as the plugins of sessions in there declare it; absent: those of no workspace */
  cwd?: string;
}

/** TriggerTypesResult are types, by name. */
export interface TriggerTypesResult {
  data: TriggerType[];
}

/** TriggerUpdateParams changes a trigger. What is absent stays. Times of its schedule before now are not missed any more. */
export interface TriggerUpdateParams {
  idempotencyKey?: string;
  key: string;
  sessionId?: SessionID;
  /** refused if it is another one by now */
  triggerId?: TriggerID;
  /** refused if it was updated since */
  revision?: number;
  enabled?: boolean;
  source?: TriggerSource;
  /** {} lets everything through */
  filter?: unknown;
  action?: TriggerAction;
}

/** TurnCause is why something that no person sent came into a conversation. The model sees each once. */
export interface TurnCause {
  /** unique in the session */
  id: string;
  /** such as monitor/line, task/completed or trigger */
  type: string;
  /** who caused it: the id of a task or a trigger */
  origin?: string;
  /** what the model is told; where an input stands beside it, the text is there */
  text?: string;
}

/** trn_... */
export type TurnID = string;

/** TurnInputInfo is what a plugin takes with a turn. */
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

/** TurnInterruptResult says that the wish is durable, or that the turn had ended. */
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

/** TurnOptions are what a protocol is asked to do in a turn, in words that only the protocol understands. */
export interface TurnOptions {
  /** of the payload, from 1 */
  schemaVersion: number;
  /** at most 64 KiB */
  payload: unknown;
}

/** TurnOutcome is how a turn ended, with what that kind of end carries. */
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

/** TurnReport is everything a turn came to. The same report is answered however often and by whomever it is asked for. */
export interface TurnReport {
  turnId: TurnID;
  sessionId: SessionID;
  state: TurnState;
  /** set once the turn has ended */
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
  /** from start to the final commit */
  durationMs?: number;
  headRevision?: number;
  /** the turn that goes on in another frame */
  followedBy?: TurnID;
}

/** TurnStartParams gives a session an input. */
export interface TurnStartParams {
  idempotencyKey?: string;
  sessionId: SessionID;
  input: InputPart[];
  /** for the turn that begins with the input */
  pluginInputs?: PluginInputs;
  whenBusy?: WhenBusy;
  /** For the session's protocol, over those that it has recorded, in this turn and those that follow it. */
  turnOptions?: TurnOptions;
}

/** TurnStartResult says that the input is durable. Seq is that of its turn/accepted event. */
export interface TurnStartResult {
  turnId: TurnID;
  inputId: InputID;
  state: TurnState;
  seq: Seq;
  duplicate?: boolean;
}

/** TurnState is where a turn is. */
export type TurnState = "queued" | "running" | "waiting" | "completed" | "cancelled" | "failed";

/** TurnSteerParams sends an input into a running turn. */
export interface TurnSteerParams {
  idempotencyKey?: string;
  turnId: TurnID;
  input: InputPart[];
  /** the earliest checkpoint; absent: afterWork */
  boundary?: Boundary;
}

/** TurnSteerResult says that the input is durable. If the turn ends first, the input gets the next one. */
export interface TurnSteerResult {
  inputId: InputID;
  seq: Seq;
  duplicate?: boolean;
}

/** TurnTraceParams reads what the log has of a turn. */
export interface TurnTraceParams {
  turnId: TurnID;
  cursor?: string;
  /** 1 to 500; absent: 200 */
  limit?: number;
}

/** TurnTraceResult is a page of the durable events of a turn, in order: its inputs, model calls with tokens and attempts, tool calls, questions and their answers, and its end. */
export interface TurnTraceResult {
  turn: TurnReport;
  data: Event[];
  nextCursor?: string;
}

/** TurnWaitParams waits for the end of a turn, as often and from as many clients as one likes. */
export interface TurnWaitParams {
  turnId: TurnID;
  /** absent: no limit; then the report of a turn that has not ended */
  timeoutMs?: number;
  /** wait for the turn that follows in another frame instead, and so on */
  follow?: boolean;
}

/** UnknownOutcomeRule says how long the question about a call of unknown outcome stays open before the model is told that nobody knows. */
export interface UnknownOutcomeRule {
  /** absent: ten minutes; 0: the model is told at once */
  deadlineMs?: number;
}

/** Usage counts tokens in five buckets. Reasoning is a part of Output; the others are disjoint. Cost is what those of them cost whose model had a price in the configuration when it was called. */
export interface Usage {
  /** not cached */
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  reasoning: number;
  /** in billionths of a US dollar */
  cost?: number;
}

/** UsageReadParams sums a ledger, with what was used by sessions that work for it, under their labels; without a session, the ledgers of all, each call once. */
export interface UsageReadParams {
  sessionId?: SessionID;
}

/** UsageReadResult is a ledger by source and model. */
export interface UsageReadResult {
  data: UsageRow[];
  total: Usage;
}

/** UsageRow is one line of a session's ledger. */
export interface UsageRow {
  /** turn, or the label of a direct completion or of a session that works for this one */
  source: string;
  model: string;
  usage: Usage;
  calls: number;
  /** calls whose usage was lost */
  unknown?: number;
}

/** WakeRefusal is why a wake was not taken, or is not any more. */
export type WakeRefusal = "duplicate" | "targetGone" | "expired" | "sequenceRewound" | "tooLarge";

/** WhenBusy says what to do with an input while a turn runs. */
export type WhenBusy = "queue" | "refuse" | "steer";

/** The params and the result of every method. */
export interface Methods {
  /** Calls an operation of any kind. */
  "action/invoke": { params: OperationParams; result: OperationReceipt };
  /** Reads a range of an artifact by its digest. */
  "artifact/read": { params: ArtifactReadParams; result: ArtifactReadResult };
  /** Uploads an artifact in parts. The last part stores it. */
  "artifact/write": { params: ArtifactWriteParams; result: ArtifactWriteResult };
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
  /** Lists the configured models. With `check: true`, also asks each server whether it accepts requests. */
  "model/list": { params: ModelListParams; result: ModelListResult };
  /** Gives the daemon an API key that its environment lacks. lashd keeps it in memory only. */
  "model/setKey": { params: ModelSetKeyParams; result: Empty };
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
  "plugin/read": { params: PluginParams; result: PluginReadResult };
  /** Scans plugin directories now and loads changes. With `dryRun: true`, only reports them. */
  "plugin/reload": { params: PluginReloadParams; result: PluginReloadResult };
  /** Enables or disables a plugin. */
  "plugin/setEnabled": { params: PluginEnableParams; result: PluginResult };
  /** Trusts a workspace plugin with exactly its current files, and loads it. */
  "plugin/trust": { params: PluginTrustParams; result: PluginResult };
  /** Revokes trust in a workspace plugin. */
  "plugin/untrust": { params: PluginUntrustParams; result: PluginResult };
  /** Removes an input that no turn has used yet. */
  "queue/cancel": { params: QueueCancelParams; result: QueueCancelResult };
  /** Lists the queued inputs of a session. */
  "queue/list": { params: QueueListParams; result: QueueListResult };
  /** Returns the OpenRPC document of this protocol. */
  "rpc/discover": { params: Empty; result: unknown };
  /** Subscribes to events of the whole daemon. */
  "server/attach": { params: Empty; result: StatusResult };
  /** Copies all stored data to a new directory. Turns keep running during the copy. */
  "server/backup": { params: ServerBackupParams; result: ServerBackupResult };
  /** Reports the daemon's resource use, its modes, and plugins with problems. */
  "server/diagnostics": { params: Empty; result: DiagnosticsResult };
  /** Reports the daemon's version, its uptime, and how many sessions, turns and decisions are open. */
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
  /** Changes settings. They apply from the next turn on. */
  "session/configure": { params: SessionConfigureParams; result: HeadResult };
  /** Deletes a session permanently. Stops a running turn first. */
  "session/delete": { params: SessionMutationParams; result: SeqResult };
  /** Ends a subscription. */
  "session/detach": { params: SessionParams; result: Empty };
  /** Returns the file changes of a session, a turn or a file point as unified diffs. */
  "session/diff": { params: SessionDiffParams; result: SessionDiffResult };
  /** Creates a session that shares this session's history up to a node. */
  "session/fork": { params: SessionForkParams; result: SessionNewResult };
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
