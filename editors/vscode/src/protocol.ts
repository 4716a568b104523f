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
}

/** ApprovalMode says what lashd does with a tool call: run it, ask for approval, or reject it. */
export type ApprovalMode = "allow" | "ask" | "deny";

/** ApprovalRule decides about the tool calls it matches. If several rules match, the strictest counts: deny, then ask, then allow. An ask or deny rule also matches tools that declare themselves to be like the named tool. The prefix is compared with the subjects of a call: its command or its paths; for a patch, every path in it. An ask or deny rule matches if one subject matches. An allow rule matches only if all subjects match. Commands are parsed like a shell does. The words of the prefix are compared with each simple command, including commands run by env, sudo, sh -c and similar programs. An allow rule must match all of them, and the command line must hold only literal words. If lashd cannot know what a command runs, a deny rule asks instead. A prefix with a slash names a program or a directory of programs. A path matches if it equals the prefix or lies below it. Both may be absolute or relative to the workspace. lashd compares the path as written and the path after following symbolic links. For ask and deny, one match is enough and case is ignored; allow needs both. */
export interface ApprovalRule {
  /** a tool name, or a pattern with * */
  tool: string;
  /** the first words of a command, or a path */
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

/** AssistantOutput is the text of a turn. */
export interface AssistantOutput {
  /** without protocol syntax */
  safe: string;
  /** as the model wrote it; set only if it differs from safe */
  raw?: string;
  state: OutputState;
}

/** Attachment is a file in an input. It has data, a digest or a URL. */
export interface Attachment {
  name?: string;
  /** media type */
  type: string;
  /** the contents, base64 on the wire */
  data?: string;
  /** digest of stored contents */
  digest?: Digest;
  /** address of external contents */
  url?: string;
}

/** AttemptOutcome is how an attempt ended. */
export type AttemptOutcome = "completed" | "failed" | "aborted" | "interrupted";

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

/** Boundary is the checkpoint at which a steered input may enter a running turn. */
export type Boundary = "afterWork" | "beforeCompletion";

/** Budget limits a turn. */
export interface Budget {
  /** maximum number of model calls; -1: no limit */
  iterations: number;
  /** maximum number of attempts in a row without a successful tool call or code cell; 0: 12 */
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

/** the model's id, or derived from turn, iteration and position */
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

/** authorizes tool/complete for a pending call; only the tool that took it knows it */
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
  choices: DecisionChoice[];
  /** the answer after the deadline */
  default: DecisionChoice;
  openedAtMs: number;
  /** ms since 1970; 0: no deadline */
  deadlineAtMs: number;
  /** of a completion */
  deferral?: Deferral;
  answer?: DecisionAnswer;
}

/** DecisionAnswer is the answer to a decision and its author. */
export interface DecisionAnswer {
  choice: DecisionChoice;
  value?: unknown;
  /** a client id, deadline, or internal:<subject> */
  by: string;
  atMs: number;
}

/** DecisionChoice is a possible answer to a decision. */
export type DecisionChoice = "allowOnce" | "allowSession" | "allowAlways" | "reject" | "happened" | "didNotRun" | "runAgain" | "tellModel" | "answer" | "cancelled" | "unavailable";

/** dec_... */
export type DecisionID = string;

/** DecisionKind says what a decision is about. */
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

/** Deferral says how long a pending tool call waits for tool/complete, and what happens after that. */
export interface Deferral {
  /** counted from when the tool takes the completion key; absent: one day */
  deadlineMs?: number;
  onTimeout?: OnTimeout;
  onCancel?: OnCancel;
}

/** Delivery is when a wake comes to the model. */
export type Delivery = "earliestBoundary" | "afterTurn";

/** DeliveryState is what has come of a delivery. All but reserved are final. */
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
export type ErrorKind = "parseError" | "badFrame" | "frameTooLarge" | "foreignProtocol" | "invalidRequest" | "notInitialized" | "methodNotFound" | "invalidParams" | "internal" | "denied" | "overloaded" | "cancelled" | "sessionNotFound" | "turnNotFound" | "nodeNotFound" | "inputNotFound" | "decisionNotFound" | "toolNotFound" | "triggerNotFound" | "callNotFound" | "modelNotFound" | "driverNotFound" | "snapshotNotFound" | "taskNotFound" | "taskElsewhere" | "taskEnded" | "monitorNotFound" | "artifactNotFound" | "unknownOperation" | "missingSession" | "unexpectedSession" | "operationFailed" | "pluginFailed" | "pluginNotFound" | "pluginTrusted" | "mcpServerTaken" | "pluginModified" | "extensionRejected" | "sessionDeleted" | "sessionStillInUse" | "turnActive" | "turnNotActive" | "conflict" | "forkPointNotRetained" | "fileConflict" | "filesUnrestorable" | "pointNotFound" | "generationMismatch" | "tooLarge" | "providerError" | "storageFull" | "storageBusy" | "storagePoisoned" | "storageReadOnly" | "shuttingDown";

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

/** EventType is the type of a session event. Durable reports which types have a Seq. */
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

/** FileConflict says why restoring a file would lose changes. Only force restores it. */
export type FileConflict = "changedSince" | "shared" | "unsure" | "notKept";

/** FileDiff is the change of one file by a turn or a session. */
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
  /** number of changed files */
  files: number;
  /** number of these without a copy of their earlier contents */
  unkept?: number;
  /** why files cannot be restored to before this point; absent: they can */
  unrestorable?: string;
  /** a later undo reverted it */
  undone?: boolean;
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

/** FileSource says which files are watched. Changes while lashd does not run are not noticed. */
export interface FileSource {
  /** of paths in the directory; * and ? stay within a name, ** crosses directories; without a slash: of names */
  glob: string;
  /** absolute; absent: the workspace of the session that is woken, or of the new one */
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

/** ForkCatalog says which tools a fork begins with. */
export type ForkCatalog = "inherit" | "fresh";

/** ForkSource is the point at which a fork begins. */
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

/** InputState is where an input is. */
export type InputState = "pendingActive" | "deferredNextTurn" | "queued" | "accepted" | "completed" | "cancelled";

/** InputType is the kind of an input part. */
export type InputType = "text" | "attachment";

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

/** InterruptStatus tells who won. */
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
  output?: ToolOutput;
  durationMs?: number;
  attachment?: Attachment;
  origin?: Origin;
  plugin?: PluginNode;
}

/** node id and part index: nod_...:0 */
export type ItemID = string;

/** ItemKind says what an item shows. */
export type ItemKind = "userMessage" | "agentMessage" | "reasoning" | "toolCall" | "codeCell" | "fileChange" | "plan" | "compaction" | "notice";

/** ItemStatus is the state of an item. */
export type ItemStatus = "inProgress" | "completed" | "failed" | "unknown";

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

/** ModelSpec names a model and states its abilities. It comes from the configuration; lashd infers nothing from the name. */
export interface ModelSpec {
  provider: string;
  id: string;
  /** tokens; 0: unknown */
  contextWindow?: number;
  /** tokens; 0: unknown */
  outputLimit?: number;
  /** absent: not configurable */
  reasoning?: ReasoningSpec;
  /** one of Reasoning.Efforts */
  effort?: string;
  /** a failed call may be repeated even after output began */
  idempotent?: boolean;
  pinnedSampling?: boolean;
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
}

/** NodeBody is the content of a node before it has a place in history. Exactly one field is set. */
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
  /** set if the message is a wake */
  cause?: TurnCause;
  /** shown to the model once, never stored */
  transient?: boolean;
}

/** OriginKind says what added a message to history. */
export type OriginKind = "turnInput" | "plugin" | "process";

/** OutcomeKind says how a turn ended. */
export type OutcomeKind = "assistantMessage" | "finalValue" | "toolValue" | "frameSwitch" | "cancelled" | "incomplete" | "invalidInput" | "maxTurns" | "toolFailure" | "providerError" | "pluginAbort" | "runtimeError" | "submittedError" | "toolError";

/** OutputState says whether the text of a turn is usable. */
export type OutputState = "usable" | "empty" | "tracebackOnly" | "recoveredFromError";

/** OutputStatus is how a tool call ended. */
export type OutputStatus = "success" | "failure" | "cancelled" | "unknown";

/** OverlayMode says how new generation options combine with the current ones. */
export type OverlayMode = "replace" | "merge";

/** Part is one piece of a message. Kind determines which other fields are set. */
export interface Part {
  kind: PartKind;
  text?: string;
  call?: ToolCall;
  result?: ToolResult;
  attachment?: Attachment;
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

/** PluginArtifact is a piece of bulk state. A small one stands here; others are read with artifact/read. */
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
  /** as in plugin/read */
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

/** PluginInputs are inputs for plugins, by plugin id: JSON that only its plugin understands. */
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
  /** as in plugin/read */
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

/** PluginParams names a plugin. */
export interface PluginParams {
  name: string;
  /** workspace of the plugin; absent: a plugin outside workspaces */
  cwd?: string;
}

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

/** PluginReadResult describes a plugin for review before you trust it. */
export interface PluginReadResult {
  plugin: PluginInfo;
  /** of the current files, or of the running version if these cannot be read */
  contributes: PluginContribution[];
  /** of the same version */
  reach: PluginReach;
  /** of the reviewed files, for plugin/trust; absent: they are already running */
  digest?: Digest;
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

/** Price is what a million tokens of a model cost, in US dollars. */
export interface Price {
  /** also what is written to a cache */
  input: number;
  output: number;
  /** what is read from a cache */
  cached: number;
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

/** ReasoningSpec lists the reasoning efforts of a model. */
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
  /** the error's code */
  reason: string;
  /** HTTP status of the response; absent: no response */
  status?: number;
  /** the error message, without API keys */
  message?: string;
}

/** RewindFiles says what a rewind is about. */
export type RewindFiles = "also" | "only";

/** Role is the author of a message. */
export type Role = "user" | "assistant" | "system" | "event";

/** sequence number of an event in its session: 1, 2, 3, ... without gaps */
export type Seq = number;

/** SeqResult answers a change that has nothing more to say. */
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

/** SessionRule says whether an operation requires a session. */
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

/** ShutdownParams says what to shut down. */
export interface ShutdownParams {
  /** also stop the daemon; running turns resume after its restart */
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
  /** ok, or a description of the problem, such as lost commits; lashd doctor helps with these */
  store: string;
}

/** StopReason is why a model stopped. */
export type StopReason = "stop" | "toolUse" | "outputLimit" | "contextOverflow" | "contentFilter" | "providerError" | "cancelled" | "unknown";

/** Subagent describes a session that works for another session. Depth counts the sessions above it; a person's session has depth 0. */
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
  /** the call or the code cell that made this call; absent: the model made it */
  parent?: CallID;
  /** position in the order of completion within its batch */
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

/** trg_...; a trigger that is deleted and created again gets a new id */
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

/** TurnState is the state of a turn. */
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

/** UnknownOutcomeRule sets how long lashd asks a person about a tool call of unknown outcome. After that, lashd reports the unknown outcome to the model. */
export interface UnknownOutcomeRule {
  /** absent: ten minutes; 0: report to the model at once */
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
