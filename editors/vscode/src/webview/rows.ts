import type { SessionView, TurnEnd } from "../model/session";
import { quotedOf } from "../model/input";
import { counted } from "../model/sessions";
import type { FilePoint, Item, ItemID, TurnID } from "../protocol";
import type { Row } from "./list";

/** ItemRow shows an item and the output of its running call. */
export interface ItemRow extends Row {
  item: Item;
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

export type ChatRow = ItemRow | EndRow;

/** rowsOf returns the rows of a view. An unchanged row keeps its version. */
export function rowsOf(view: SessionView): ChatRow[] {
  const rows: ChatRow[] = [];
  const started = new Set<TurnID>(); // turns with an earlier item
  const inputs = new Map<TurnID, string>();
  view.items.forEach((item, at) => {
    const { turnId } = item;
    const steered = item.kind === "userMessage" && !isAdded(item) && turnId !== undefined && started.has(turnId) && !sameInput(view.items[at - 1], item);
    if (turnId !== undefined && item.kind === "userMessage" && !isAdded(item) && !steered) {
      inputs.set(turnId, quotedOf(item.text ?? "") ? (inputs.get(turnId) ?? "") : (item.text ?? ""));
    }
    rows.push({ ...rowOf(view, item), ...(steered && { steered }) });
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
  });
  return rows;
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

/** isCommand reports whether a call runs a command. */
export function isCommand({ args }: Item): boolean {
  return typeof (args as { command?: unknown } | undefined)?.command === "string";
}

/** sameInput reports whether two items are parts of one input, such as a text and its attachment. */
function sameInput(a: Item | undefined, b: Item): boolean {
  return a?.kind === "userMessage" && a.turnId === b.turnId && a.origin?.inputId === b.origin?.inputId;
}

function rowOf(view: SessionView, item: Item): ItemRow {
  const progress = item.callId === undefined ? undefined : view.progress[item.callId];
  const asked = item.status === "inProgress" && item.callId !== undefined && view.decisions.some(({ call }) => call?.callId === item.callId);
  const version = progress !== undefined || asked ? `${item.status}:${asked}:${progress?.length}:${progress?.slice(-40)}` : item;
  return { key: item.itemId, version, item, progress, live: item.itemId in view.live, ...(asked && { asked }) };
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
      return `Turn failed: ${end.message || kind}`;
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
  if (!point || point.files === 0) {
    return point?.unrestorable ? `The file changes of this turn cannot be undone: ${point.unrestorable}` : "";
  }
  const files = `${counted(point.files, "file")} changed`;
  return point.undone ? `${files}, undone` : files;
}

/** summaryOf returns the most informative argument of a tool call, on one line. */
export function summaryOf(item: Item): string {
  const patched = patchedFiles(item);
  if (patched !== "") {
    return patched;
  }
  const args = (item.args ?? {}) as Record<string, unknown>;
  const known = ["command", "path", "pattern", "query", "url", "task", "name"].map((name) => args[name]);
  const argument = known.find((value) => typeof value === "string") ?? Object.values(args).find((value) => typeof value === "string");
  const text = typeof argument === "string" ? argument : "";
  const line = text.split("\n")[0] ?? "";
  return line.length < text.length || line.length > 160 ? `${line.slice(0, 160)}\u2026` : line;
}

/** patchedFiles returns the files that a call changes with a patch; "" for other calls. */
function patchedFiles({ args }: Item): string {
  const { patch } = (args ?? {}) as { patch?: unknown };
  return typeof patch === "string" ? [...patch.matchAll(/^\*\*\* (?:Add|Update|Delete) File: (.+)$/gm)].map(([, path]) => path).join(", ") : "";
}
