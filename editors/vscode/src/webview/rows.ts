import type { SessionView, TurnEnd } from "../model/session";
import { quotedOf } from "../model/input";
import { counted } from "../model/sessions";
import { nodeOf } from "../model/session";
import { looks } from "../model/callWords";
import type { FilePoint, Item, ItemID, OutcomeKind, SessionID, Task, TaskID, TurnCause, TurnID } from "../protocol";
import type { Row } from "./list";

/** ItemRow shows an item and the output of its running call. */
export interface ItemRow extends Row {
  item: Item;
  /** further items of the same input: a message has its attachments, its text and what was attached as text */
  parts?: Item[];
  /** the background task that the call started, or that woke the session */
  task?: Task;
  progress?: string;
  live: boolean;
  /** a person is asked about the call */
  asked?: boolean;
  /** the message was sent while its turn ran */
  steered?: boolean;
}

/** EndRow shows the outcome of a turn. */
export interface EndRow extends Row {
  end: TurnEnd;
  /** the last item of the turn */
  after: ItemID;
  point?: FilePoint;
  /** the text of its input, to write it again after an undo; absent: an earlier page has it */
  input?: string;
  /** the newest turn, and none runs */
  last: boolean;
}

/** RunRow shows several calls in a row that only looked at files. */
export interface RunRow extends Row {
  run: ItemRow[];
}

/** ForkRow ends the history that a fork shares with its source. */
export interface ForkRow extends Row {
  source: SessionID;
  /** of the source; absent: not known */
  title?: string;
}

export type ChatRow = ItemRow | EndRow | RunRow | ForkRow;

/** Unfolded is a row before several calls in a row become one. */
type Unfolded = Exclude<ChatRow, RunRow>;

/** The number of calls in a row that become one row, if they only look at files. */
const minRun = 3;

/** rowsOf returns the rows of a view. An unchanged row keeps its version. title is that of the session of which this one is a fork. */
export function rowsOf(view: SessionView, title?: string): ChatRow[] {
  const rows: Unfolded[] = [];
  const tasks = new Map(view.tasks.map((task) => [task.taskId, task]));
  const started = new Set<TurnID>(); // turns with an earlier item
  const inputs = new Map<TurnID, string>();
  view.items.forEach((item, at) => {
    const { turnId } = item;
    const steered = item.kind === "userMessage" && !isAdded(item) && turnId !== undefined && started.has(turnId) && !sameInput(view.items[at - 1], item);
    if (turnId !== undefined && item.kind === "userMessage" && !isAdded(item) && !steered) {
      inputs.set(turnId, quotedOf(item.text ?? "") ? (inputs.get(turnId) ?? "") : (item.text ?? ""));
    }
    const before = rows.at(-1);
    if (before && "item" in before && !isAdded(item) && sameInput(before.item, item)) {
      rows[rows.length - 1] = withPart(before, item);
    } else {
      rows.push({ ...rowOf(view, item, tasks), ...(steered && { steered }) });
    }
    if (turnId !== undefined) {
      started.add(turnId);
    }
    const end = turnId === undefined ? undefined : view.ends[turnId];
    if (end && view.items[at + 1]?.turnId !== turnId) {
      const point = view.points[end.turnId];
      const last = at === view.items.length - 1 && view.turnId === undefined;
      const version = `${end.outcome?.kind} ${end.code} ${end.message} ${end.usage?.output} ${last} ${point?.pointId} ${point?.state} ${point?.files} ${point?.undone}`;
      rows.push({ key: `end:${end.turnId}`, version, end, after: item.itemId, point, input: inputs.get(end.turnId), last });
    }
    rows.push(...forkAfter(view, at, title));
  });
  return foldRuns(rows);
}

/** forkAfter returns the row after an item if it is the last one that a fork shares with its source. */
function forkAfter({ session, items }: SessionView, at: number, title: string | undefined): ForkRow[] {
  const { source } = session.relation;
  const isShared = (item: Item | undefined) => item !== undefined && nodeOf(item.itemId) === source?.node;
  return source && isShared(items[at]) && !isShared(items[at + 1]) ? [{ key: "fork", version: title, source: source.sessionId, title }] : [];
}

/** withPart adds a further item of its input to the row of a message. */
function withPart(row: ItemRow, item: Item): ItemRow {
  const parts = [...(row.parts ?? []), item];
  return { ...row, parts, version: [row.item, ...parts].map(({ itemId }) => itemId).join() };
}

/** taskIdOf returns the id of the background task that a call started, or whose end or output woke the session with a message. */
function taskIdOf(item: Item): TaskID | undefined {
  if (item.tool === "start_command") {
    return (item.output?.value as { task?: TaskID } | null | undefined)?.task;
  }
  return wakeOf(item)?.origin;
}

/** foldRuns makes one row of several calls in a row that only looked at files. */
function foldRuns(rows: Unfolded[]): ChatRow[] {
  const all: ChatRow[] = [];
  let run: ItemRow[] = [];
  const flush = () => {
    const [first] = run;
    const one = first && run.length >= minRun ? [{ key: `run:${first.key}`, version: run.map(({ key }) => key).join(), run, keys: run.map(({ key }) => key) }] : run;
    all.push(...one);
    run = [];
  };
  for (const row of rows) {
    if ("item" in row && onlyLooked(row.item)) {
      run.push(row);
    } else {
      flush();
      all.push(row);
    }
  }
  flush();
  return all;
}

/** onlyLooked reports whether an item is a call that looked at files and brought nothing to see. */
function onlyLooked(item: Item): boolean {
  return item.kind === "toolCall" && item.status === "completed" && looks(item) !== undefined && !item.output?.attachments?.length && !item.output?.change;
}

/** isAdded reports whether a plugin added a message to an input. */
export function isAdded({ kind, origin }: Item): boolean {
  return kind === "userMessage" && origin?.kind === "plugin";
}

/** addedText returns the first line of a message that a plugin added, and the number of its other lines. */
export function addedText({ text = "" }: Item): { title: string; lines: number } {
  const [title = "", ...rest] = text.trimEnd().split("\n");
  return { title: title.replace(/^\[|\]$/g, ""), lines: rest.length };
}

/** wakeOf returns why the session was woken, if a message woke it. */
export function wakeOf({ kind, origin }: Item): TurnCause | undefined {
  return kind === "userMessage" ? origin?.cause : undefined;
}

/** toldCall returns the call of a tool that a person made and that the message tells the model; undefined for other messages. */
export function toldCall(item: Item): { title: string; output: string } | undefined {
  const [, args, status = "", output = ""] = (wakeOf(item)?.type === "client/call" && /A person ran this tool with (.*)\. The status is (\w+)\. The output:\n([\s\S]*)$/u.exec(item.text ?? "")) || [];
  if (args === undefined) {
    return undefined;
  }
  const { command, outside } = objectOf(args);
  const ran = typeof command === "string" ? command : (wakeOf(item)?.origin ?? "a tool");
  return { title: `You ran ${ran}${outside === true ? " outside the sandbox" : ""}${status === "success" ? "" : `: ${status}`}`, output };
}

function objectOf(json: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(json)) as Record<string, unknown>;
  } catch {
    return {};
  }
}

/** isCommand reports whether a call runs a command. */
export function isCommand({ args }: Item): boolean {
  return typeof (args as { command?: unknown } | undefined)?.command === "string";
}

/** sameInput reports whether two items are parts of one input, such as a text and its attachment. */
function sameInput(a: Item | undefined, b: Item): boolean {
  return a?.kind === "userMessage" && b.kind === "userMessage" && a.turnId === b.turnId && a.origin?.inputId === b.origin?.inputId;
}

function rowOf(view: SessionView, item: Item, tasks: Map<TaskID, Task>): ItemRow {
  const progress = item.callId === undefined ? undefined : view.progress[item.callId];
  const asked = item.status === "inProgress" && item.callId !== undefined && view.decisions.some(({ call }) => call?.callId === item.callId);
  const task = tasks.get(taskIdOf(item) ?? "");
  const version = progress !== undefined || asked || task ? `${item.status}:${asked}:${progress?.length}:${progress?.slice(-40)}:${task?.state}` : item;
  return { key: item.itemId, version, item, progress, live: item.itemId in view.live, ...(asked && { asked }), ...(task && { task }) };
}

/** Step is an entry of a plan. */
export interface Step {
  text: string;
  status: "pending" | "inProgress" | "completed";
}

/** planOf returns the steps of the newest plan of the model. */
export function planOf(view: SessionView): Step[] {
  const call = view.items.findLast((item) => item.tool === "update_plan" && item.status === "completed");
  const { steps } = (call?.args ?? {}) as { steps?: Step[] };
  return Array.isArray(steps) ? steps : [];
}

/** failures say what went wrong in a turn that failed without a message. */
const failures: Partial<Record<OutcomeKind, string>> = {
  providerError: "the model's server reported an error.",
  invalidValue: "the model did not return a valid result.",
  invalidInput: "a plugin rejected the input.",
  toolFailure: "a tool failed.",
  toolError: "a tool failed.",
  pluginAbort: "a plugin stopped it.",
  submittedError: "the agent reported that it could not do the task.",
};

/** endText describes a turn that ended without a reply; it is empty for the others. */
export function endText(end: TurnEnd): string {
  const kind = end.outcome?.kind;
  switch (kind) {
    case undefined:
    case "assistantMessage":
    case "frameSwitch":
      return "";
    case "finalValue":
    case "toolValue":
      return `Result: ${JSON.stringify(end.outcome?.value)}`;
    case "cancelled":
      return stoppedText(end.outcome?.cancel?.reason);
    case "incomplete":
      return "The answer was cut off at the model's output limit.";
    case "maxTurns":
      return "Turn ended: its budget is used up.";
    default:
      return `Turn failed: ${end.message || (failures[kind] ?? "lashd did not say why. Its log may have more.")}`;
  }
}

/** lacksKey reports whether a turn failed because its provider has no API key, or refused it. */
export function lacksKey({ outcome, code = "" }: TurnEnd): boolean {
  return outcome?.kind === "providerError" && /key|auth|forbidden|permission/.test(code);
}

/** stoppedText describes a stopped turn. The terminal chat gives "stopped by the user" as its reason, which adds nothing. */
function stoppedText(reason: string | undefined): string {
  return reason && reason !== "stopped by the user" ? `Stopped: ${reason}` : "Stopped.";
}

/** filesText describes the file changes of a turn. */
export function filesText(point: FilePoint | undefined): string {
  const { files: count = 0, directories = 0 } = point ?? {};
  if (!point || count + directories === 0) {
    return point?.unrestorable ? `The file changes of this turn cannot be undone: ${point.unrestorable}` : "";
  }
  const files = `${count > 0 ? counted(count, "file") : directories === 1 ? "1 directory" : `${directories} directories`} changed`;
  return point.undone ? `${files}, undone` : files;
}
