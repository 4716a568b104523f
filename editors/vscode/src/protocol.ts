// Generated from the method table of lashd; do not edit.

export interface ApprovalConfig {
  mode?: string;
  rules?: ApprovalRule[];
  deadlineMs?: number;
  default?: string;
}

export interface ApprovalRule {
  tool: string;
  prefix?: string;
  action: string;
}

export interface ArtifactRef {
  digest: string;
  size: number;
  type?: string;
}

export interface AssistantOutput {
  safe: string;
  raw?: string;
  state: string;
}

export interface Attachment {
  name?: string;
  type: string;
  data?: string;
  digest?: string;
  url?: string;
}

export interface Budget {
  iterations: number;
  noProgress?: number;
}

export interface CallAttempt {
  outcome: string;
  error?: Issue;
  status?: number;
  position?: string;
  retry?: string;
  waitMs?: number;
}

export interface CallRecord {
  iteration: number;
  provider: string;
  model: string;
  stop?: string;
  usage?: Usage;
  attempts: CallAttempt[];
  options?: OptionReceipt[];
  durationMs: number;
}

export interface CancelEvidence {
  requestId: string;
  origin?: string;
  reason?: string;
}

export interface CancelledInput {
  inputId: string;
  status: string;
}

export interface ClientCapabilities {
  noDeltas?: boolean;
}

export interface ClientInfo {
  name: string;
  title?: string;
  version?: string;
}

export interface ClientTool {
  name: string;
  description: string;
  input?: unknown;
  kind?: string;
  replay?: string;
  deadlineMs?: number;
}

export interface CompletionParams {
  idempotencyKey?: string;
  sessionId?: string;
  model?: string;
  system?: string;
  messages: Message[];
  generation?: GenerationOptions;
  schema?: unknown;
  label?: string;
}

export interface CompletionResult {
  message: Message;
  text: string;
  stop: string;
  call: CallRecord;
  duplicate?: boolean;
}

export interface Config {
  driver: string;
  model: ModelSpec;
  budget: Budget;
  prompt?: string;
  generation?: GenerationOptions;
  approval?: ApprovalConfig;
  options?: Record<string, unknown>;
  unknownOutcome?: UnknownOutcomeRule;
}

export interface DebugPromptParams {
  sessionId: string;
  input?: InputPart[];
}

export interface DebugPromptResult {
  model: ModelSpec;
  system: string;
  tools: ToolManifest[];
  messages: Message[];
  options: GenerationOptions;
  body?: unknown;
}

export interface Decision {
  decisionId: string;
  sessionId: string;
  turnId?: string;
  kind: string;
  call?: ToolCall;
  argsHash?: string;
  prompt: string;
  choices: string[];
  default: string;
  openedAtMs: number;
  deadlineAtMs: number;
  answer?: DecisionAnswer;
}

export interface DecisionAnswer {
  choice: string;
  value?: unknown;
  by: string;
  atMs: number;
}

export interface DecisionListParams {
  sessionId?: string;
}

export interface DecisionListResult {
  data: Decision[];
}

export interface DecisionRespondParams {
  idempotencyKey?: string;
  decisionId: string;
  choice: string;
  value?: unknown;
  argsHash?: string;
}

export interface DecisionRespondResult {
  answer: DecisionAnswer;
  won: boolean;
  seq: number;
  duplicate?: boolean;
}

export interface DiagnosticsResult {
  rssBytes: number;
  heapBytes: number;
  goroutines: number;
  openFiles: number;
  children: number;
  dbBytes: number;
  walBytes: number;
  durability: string;
  sandbox: string;
  storeId: string;
  epoch: number;
  queuedBytes: number;
  traceRecordsLost: number;
}

export interface Empty {
}

export interface ErrorData {
  kind: string;
  retry: string;
  outcome?: string;
  pointer?: string;
  nearest?: string;
  retryAfterMs?: number;
  leaf?: string;
  generation?: number;
  turnId?: string;
}

export interface Event {
  sessionId?: string;
  seq?: number;
  atMs: number;
  turnId?: string;
  type: string;
  item?: Item;
  itemId?: string;
  offset?: number;
  text?: string;
  input?: InputPart[];
  inputIds?: string[];
  boundary?: string;
  outcome?: TurnOutcome;
  usage?: Usage;
  total?: Usage;
  issues?: Issue[];
  call?: CallRecord;
  iteration?: number;
  decision?: Decision;
  toolCall?: ToolCall;
  clientId?: string;
  deadlineMs?: number;
  retry?: RetryStatus;
  config?: Config;
  frame?: FrameOpen;
  frameId?: string;
  head?: Head;
  source?: ForkSource;
  tools?: ToolState;
  queue?: QueuedInput[];
  title?: string;
  plugin?: string;
  name?: string;
  body?: unknown;
}

export interface FileChange {
  path: string;
  diff: string;
  added: number;
  removed: number;
}

export interface ForkSource {
  sessionId: string;
  node: string;
}

export interface FrameOpen {
  key: string;
  reason: string;
  config: Config;
}

export interface FrameSwitch {
  key: string;
  task: string;
  nodes?: NodeBody[];
}

export interface Gap {
  sessionId: string;
  fromSeq: number;
  toSeq: number;
  reason: string;
}

export interface GenerationOptions {
  maxOutput?: number;
  temperature?: number;
  seed?: number;
  stop?: string[];
}

export interface GraphAppendParams {
  idempotencyKey?: string;
  sessionId: string;
  nodes: NodeBody[];
  requiresAncestorNodeId?: string;
  operationId?: string;
}

export interface GraphAppendResult {
  status: string;
  nodeIds?: string[];
  leaf: string;
  seq: number;
  duplicate?: boolean;
}

export interface GraphPinParams {
  idempotencyKey?: string;
  sessionId: string;
  nodeId: string;
  reason?: string;
}

export interface GraphReadParams {
  sessionId: string;
  cursor?: string;
  limit?: number;
}

export interface GraphReadResult {
  head: Head;
  data: Node[];
  pins: PinInfo[];
  nextCursor?: string;
}

export interface Head {
  revision: number;
  leaf: string;
  generation: number;
  frame: string;
}

export interface HeadResult {
  head: Head;
  seq: number;
  duplicate?: boolean;
}

export interface InitializeParams {
  protocolVersion?: number;
  clientInfo: ClientInfo;
  clientId?: string;
  capabilities?: ClientCapabilities;
}

export interface InitializeResult {
  protocolVersion: number;
  serverInfo: ClientInfo;
  clientId: string;
  storeId: string;
  epoch: number;
  features: string[];
  dataDir: string;
}

export interface InputPart {
  type: string;
  text?: string;
  attachment?: Attachment;
}

export interface Issue {
  kind: string;
  code: string;
  message: string;
  stop?: string;
  raw?: string;
  retryable?: boolean;
}

export interface Item {
  itemId: string;
  kind: string;
  status: string;
  turnId?: string;
  atMs: number;
  text?: string;
  callId?: string;
  tool?: string;
  args?: unknown;
  output?: ToolOutput;
  durationMs?: number;
  attachment?: Attachment;
  origin?: Origin;
  plugin?: PluginNode;
}

export interface Message {
  role: string;
  parts: Part[];
  origin?: Origin;
}

export interface ModelInfo {
  name: string;
  model: ModelSpec;
  default?: boolean;
}

export interface ModelListResult {
  data: ModelInfo[];
}

export interface ModelSpec {
  provider: string;
  id: string;
  contextWindow?: number;
  outputLimit?: number;
  reasoning?: ReasoningSpec;
  effort?: string;
  idempotent?: boolean;
  pinnedSampling?: boolean;
}

export interface Node {
  nodeId: string;
  parent?: string;
  generation: number;
  frame: string;
  turnId?: string;
  atMs: number;
  message?: Message;
  plugin?: PluginNode;
  frameOpen?: FrameOpen;
}

export interface NodeBody {
  message?: Message;
  plugin?: PluginNode;
  frameOpen?: FrameOpen;
}

export interface OptionReceipt {
  option: string;
  fate: string;
}

export interface Origin {
  kind: string;
  turnId?: string;
  inputId?: string;
  plugin?: string;
  transient?: boolean;
}

export interface Part {
  kind: string;
  text?: string;
  call?: ToolCall;
  result?: ToolResult;
  attachment?: Attachment;
  replay?: unknown;
  route?: string;
  prune?: Prune;
}

export interface PinInfo {
  nodeId: string;
  reason?: string;
  atMs: number;
}

export interface PluginNode {
  type: string;
  body: unknown;
}

export interface Prune {
  state: string;
  breadcrumb?: string;
  archive?: string;
}

export interface QueueCancelParams {
  idempotencyKey?: string;
  sessionId: string;
  inputId: string;
  suffix?: boolean;
}

export interface QueueCancelResult {
  data: CancelledInput[];
  seq: number;
  duplicate?: boolean;
}

export interface QueueListParams {
  sessionId: string;
  all?: boolean;
}

export interface QueueListResult {
  data: QueuedInput[];
}

export interface QueuedInput {
  inputId: string;
  turnId: string;
  state: string;
  input: InputPart[];
  boundary?: string;
  atMs: number;
}

export interface ReasoningSpec {
  efforts: string[];
  default?: string;
  mandatory?: boolean;
}

export interface Relation {
  kind: string;
  parent?: string;
  cause?: string;
  source?: ForkSource;
}

export interface RetryStatus {
  waitMs: number;
  attempt: number;
  maxAttempts: number;
  reason: string;
}

export interface SeqResult {
  seq: number;
  duplicate?: boolean;
}

export interface Session {
  sessionId: string;
  title?: string;
  cwd: string;
  state: string;
  head: Head;
  config: Config;
  relation: Relation;
  seq: number;
  turnIndex: number;
  usage: Usage;
  createdAtMs: number;
  updatedAtMs: number;
  archived?: boolean;
  closed?: boolean;
}

export interface SessionArchiveParams {
  idempotencyKey?: string;
  sessionId: string;
  undo?: boolean;
}

export interface SessionAttachParams {
  sessionId: string;
  afterSeq?: number;
  epoch?: number;
}

export interface SessionAttachResult {
  session: Session;
  items?: Item[];
  nextCursor?: string;
  openItems?: Item[];
  decisions: Decision[];
  queue: QueuedInput[];
  tasks: Task[];
  turnId?: string;
  seq: number;
  gap?: Gap;
}

export interface SessionConfigureParams {
  idempotencyKey?: string;
  sessionId: string;
  model?: string;
  prompt?: string;
  budget?: Budget;
  approval?: ApprovalConfig;
  generation?: GenerationOptions;
  options?: Record<string, unknown>;
  unknownOutcome?: UnknownOutcomeRule;
}

export interface SessionForkParams {
  idempotencyKey?: string;
  sessionId: string;
  atNode?: string;
  title?: string;
  toolCatalog?: string;
}

export interface SessionListParams {
  cwd?: string;
  archived?: boolean;
  cursor?: string;
  limit?: number;
}

export interface SessionListResult {
  data: Session[];
  nextCursor?: string;
}

export interface SessionMutationParams {
  idempotencyKey?: string;
  sessionId: string;
}

export interface SessionNewParams {
  idempotencyKey?: string;
  sessionId?: string;
  cwd: string;
  title?: string;
  driver?: string;
  model?: string;
  prompt?: string;
  budget?: Budget;
  approval?: ApprovalConfig;
  options?: Record<string, unknown>;
  unknownOutcome?: UnknownOutcomeRule;
}

export interface SessionNewResult {
  sessionId: string;
  session: Session;
  seq: number;
  duplicate?: boolean;
}

export interface SessionOverlayParams {
  idempotencyKey?: string;
  sessionId: string;
  includeBaseTools?: boolean;
  tools?: ClientTool[];
  prompt?: string;
}

export interface SessionOverlayResult {
  tools: ToolState;
  seq: number;
  duplicate?: boolean;
}

export interface SessionParams {
  sessionId: string;
}

export interface SessionReadParams {
  sessionId: string;
  cursor?: string;
  limit?: number;
}

export interface SessionReadResult {
  session: Session;
  data: Item[];
  nextCursor?: string;
}

export interface SessionRewindParams {
  idempotencyKey?: string;
  sessionId: string;
  toNode: string;
  dryRun?: boolean;
}

export interface SessionRewindResult {
  head: Head;
  pinned?: string;
  nodes: number;
  seq: number;
  duplicate?: boolean;
}

export interface SessionSetTitleParams {
  idempotencyKey?: string;
  sessionId: string;
  title: string;
}

export interface SessionWaitParams {
  sessionId: string;
  timeoutMs?: number;
}

export interface SessionWaitResult {
  state: string;
  seq: number;
}

export interface ShutdownParams {
  daemon?: boolean;
}

export interface StatusResult {
  version: string;
  pid: number;
  uptimeMs: number;
  dataDir: string;
  socket?: string;
  sessions: number;
  loadedSessions: number;
  runningTurns: number;
  openDecisions: number;
  connections: number;
  store: string;
}

export interface Task {
  taskId: string;
  state: string;
}

export interface ToolApplyStateParams {
  idempotencyKey?: string;
  sessionId: string;
  state: ToolState;
}

export interface ToolCall {
  callId: string;
  name: string;
  args: unknown;
}

export interface ToolCallParams {
  idempotencyKey?: string;
  sessionId: string;
  name: string;
  args?: unknown;
}

export interface ToolCallRecord {
  callId: string;
  name: string;
  args: unknown;
  output: ToolOutput;
  durationMs: number;
  parent?: string;
  order: number;
}

export interface ToolCallResult {
  callId: string;
  output: ToolOutput;
  durationMs: number;
  duplicate?: boolean;
}

export interface ToolContract {
  replay: string;
  serial?: boolean;
  timeoutMs?: number;
  mayDefer?: boolean;
}

export interface ToolFailure {
  class: string;
  code: string;
  message: string;
  source: string;
  retry?: boolean;
  retryAfterMs?: number;
  raw?: unknown;
}

export interface ToolListResult {
  data: ToolRecord[];
  generation: number;
}

export interface ToolManifest {
  name: string;
  description: string;
  input?: unknown;
  kind?: string;
}

export interface ToolOutput {
  status: string;
  text?: string;
  value?: unknown;
  failure?: ToolFailure;
  artifact?: ArtifactRef;
  change?: FileChange;
  exhausted?: boolean;
}

export interface ToolRecord {
  name: string;
  description: string;
  input?: unknown;
  kind?: string;
  source: string;
  contract: ToolContract;
  revision: string;
  estimatedTokens: number;
  member: boolean;
  orphan: boolean;
  document: boolean;
}

export interface ToolRespondParams {
  idempotencyKey?: string;
  sessionId: string;
  callId: string;
  ack?: boolean;
  output?: ToolOutput;
}

export interface ToolRespondResult {
  accepted: boolean;
  duplicate?: boolean;
}

export interface ToolResult {
  callId: string;
  name: string;
  output: ToolOutput;
  durationMs?: number;
  order: number;
}

export interface ToolSetMembershipParams {
  idempotencyKey?: string;
  sessionId: string;
  generation?: number;
  members: Record<string, boolean>;
}

export interface ToolState {
  generation: number;
  tools: ToolStateSetting[];
}

export interface ToolStateResult {
  state: ToolState;
  seq: number;
  duplicate?: boolean;
}

export interface ToolStateSetting {
  name: string;
  source: string;
  member: boolean;
  orphan?: boolean;
}

export interface TurnInterruptParams {
  idempotencyKey?: string;
  turnId: string;
  reason?: string;
}

export interface TurnInterruptResult {
  status: string;
  seq: number;
  duplicate?: boolean;
}

export interface TurnListParams {
  sessionId: string;
  cursor?: string;
  limit?: number;
}

export interface TurnListResult {
  data: TurnReport[];
  nextCursor?: string;
}

export interface TurnOutcome {
  kind: string;
  text?: string;
  value?: unknown;
  tool?: string;
  frame?: FrameSwitch;
  cancel?: CancelEvidence;
}

export interface TurnParams {
  turnId: string;
}

export interface TurnReport {
  turnId: string;
  sessionId: string;
  state: string;
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
  durationMs?: number;
  headRevision?: number;
}

export interface TurnStartParams {
  idempotencyKey?: string;
  sessionId: string;
  input: InputPart[];
  whenBusy?: string;
}

export interface TurnStartResult {
  turnId: string;
  inputId: string;
  state: string;
  seq: number;
  duplicate?: boolean;
}

export interface TurnSteerParams {
  idempotencyKey?: string;
  turnId: string;
  input: InputPart[];
  boundary?: string;
}

export interface TurnSteerResult {
  inputId: string;
  seq: number;
  duplicate?: boolean;
}

export interface TurnWaitParams {
  turnId: string;
  timeoutMs?: number;
}

export interface UnknownOutcomeRule {
  deadlineMs?: number;
}

export interface Usage {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  reasoning: number;
}

export interface UsageReadParams {
  sessionId?: string;
}

export interface UsageReadResult {
  data: UsageRow[];
  total: Usage;
}

export interface UsageRow {
  source: string;
  model: string;
  usage: Usage;
  calls: number;
  unknown?: number;
}

export interface Methods {
  /** Makes one model call outside of any turn. */
  "completion/create": { params: CompletionParams; result: CompletionResult };
  /** Shows the request that the next turn would begin with. */
  "debug/prompt": { params: DebugPromptParams; result: DebugPromptResult };
  /** Lists open questions to a person. */
  "decision/list": { params: DecisionListParams; result: DecisionListResult };
  /** Answers one. The first answer counts. */
  "decision/respond": { params: DecisionRespondParams; result: DecisionRespondResult };
  /** Adds nodes to the leaf, also beside a running turn. */
  "graph/append": { params: GraphAppendParams; result: GraphAppendResult };
  /** Keeps a node reachable, whatever becomes of the leaf. */
  "graph/pin": { params: GraphPinParams; result: SeqResult };
  /** Reads a page of nodes of the active path, backwards from the leaf. */
  "graph/read": { params: GraphReadParams; result: GraphReadResult };
  /** Lets a pinned node go. */
  "graph/unpin": { params: GraphPinParams; result: SeqResult };
  /** Opens the connection. Line-framed clients of the socket may leave it out. */
  "initialize": { params: InitializeParams; result: InitializeResult };
  /** Lists the models that sessions can use. */
  "model/list": { params: Empty; result: ModelListResult };
  /** Answers. */
  "ping": { params: Empty; result: Empty };
  /** Withdraws an input that no turn has taken in. */
  "queue/cancel": { params: QueueCancelParams; result: QueueCancelResult };
  /** Lists the inputs that no finished turn has taken in. */
  "queue/list": { params: QueueListParams; result: QueueListResult };
  /** Answers the OpenRPC document of this protocol. */
  "rpc/discover": { params: Empty; result: unknown };
  /** Subscribes to events of the whole daemon. */
  "server/attach": { params: Empty; result: StatusResult };
  /** Tells what the daemon uses, and in which modes it runs. */
  "server/diagnostics": { params: Empty; result: DiagnosticsResult };
  /** Tells who serves and what is going on. */
  "server/status": { params: Empty; result: StatusResult };
  /** Puts a session away, or takes it out again. */
  "session/archive": { params: SessionArchiveParams; result: SeqResult };
  /** Subscribes to a session: a snapshot or a replay, then everything that happens. */
  "session/attach": { params: SessionAttachParams; result: SessionAttachResult };
  /** Takes an idle session out of memory; it is loaded again when used. */
  "session/close": { params: SessionMutationParams; result: SeqResult };
  /** Changes settings, from the next turn on. */
  "session/configure": { params: SessionConfigureParams; result: HeadResult };
  /** Removes a session for ever; a running turn is stopped. */
  "session/delete": { params: SessionMutationParams; result: SeqResult };
  /** Ends a subscription. */
  "session/detach": { params: SessionParams; result: Empty };
  /** Makes a session that shares this one's history up to a node. */
  "session/fork": { params: SessionForkParams; result: SessionNewResult };
  /** Lists sessions, newest first. */
  "session/list": { params: SessionListParams; result: SessionListResult };
  /** Creates a session and attaches the connection to it. */
  "session/new": { params: SessionNewParams; result: SessionNewResult };
  /** Reads a page of items, backwards from the newest. */
  "session/read": { params: SessionReadParams; result: SessionReadResult };
  /** Moves the leaf to an ancestor; what came after it stays, pinned. */
  "session/rewind": { params: SessionRewindParams; result: SessionRewindResult };
  /** Replaces what this client adds to a session: tools of its own and a prompt text. */
  "session/setOverlay": { params: SessionOverlayParams; result: SessionOverlayResult };
  /** Names a session for people. */
  "session/setTitle": { params: SessionSetTitleParams; result: SeqResult };
  /** Waits until no turn runs and none is queued. */
  "session/wait": { params: SessionWaitParams; result: SessionWaitResult };
  /** Ends what this connection began; exit follows. With daemon true, the daemon stops too. */
  "shutdown": { params: ShutdownParams; result: Empty };
  /** Replaces those settings, if they are still of the generation that was read. */
  "tool/applyState": { params: ToolApplyStateParams; result: ToolStateResult };
  /** Runs a tool without a model. */
  "tool/call": { params: ToolCallParams; result: ToolCallResult };
  /** Lists the tools of a session. */
  "tool/list": { params: SessionParams; result: ToolListResult };
  /** Answers a call of a tool that this client provides. */
  "tool/respond": { params: ToolRespondParams; result: ToolRespondResult };
  /** Says which tools the model may call. */
  "tool/setMembership": { params: ToolSetMembershipParams; result: ToolStateResult };
  /** Reads what a session decided about its tools. */
  "tool/state": { params: SessionParams; result: ToolStateResult };
  /** Stops a turn. */
  "turn/interrupt": { params: TurnInterruptParams; result: TurnInterruptResult };
  /** Lists the turns of a session, newest first. */
  "turn/list": { params: TurnListParams; result: TurnListResult };
  /** Reports a turn as it is. */
  "turn/read": { params: TurnParams; result: TurnReport };
  /** Starts a turn and waits for its end. */
  "turn/run": { params: TurnStartParams; result: TurnReport };
  /** Makes an input durable and starts its turn, or queues it. */
  "turn/start": { params: TurnStartParams; result: TurnStartResult };
  /** Sends an input into a running turn, at its next checkpoint. */
  "turn/steer": { params: TurnSteerParams; result: TurnSteerResult };
  /** Waits for the end of a turn; may be asked by anybody, at any time. */
  "turn/wait": { params: TurnWaitParams; result: TurnReport };
  /** Sums the tokens that were used, by source and model. */
  "usage/read": { params: UsageReadParams; result: UsageReadResult };
}
