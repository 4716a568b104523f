import type { CallRecord, Decision, Event, Item, TurnID, TurnReport } from "../protocol";
import { callText, durationText, errorText, resultText } from "./cells";
import { decidedText } from "./decided";
import { usageText } from "./usage";

/** traceText returns a trace for people: the events of a turn with their times since the turn was accepted. */
export function traceText(turn: TurnReport, events: readonly Event[]): string {
  const { turnId, sessionId, state, usage, acceptedAtMs, durationMs } = turn;
  const took = durationMs === undefined ? "" : `, ${seconds(durationMs)}`;
  const head = [`Turn ${turnId}: ${state}${took}`, `Session ${sessionId}, accepted ${new Date(acceptedAtMs).toISOString()}`, usageText(usage)].filter(Boolean);
  const steps = events.map((event) => eventText(event, acceptedAtMs));
  return [...head, "", ...steps].join("\n") + "\n";
}

/** promptsOf returns the first line of the first input of each turn. */
export function promptsOf(items: readonly Item[]): Record<TurnID, string> {
  const inputs = items.flatMap(({ kind, turnId, text }) => (kind === "userMessage" && turnId !== undefined && text ? [[turnId, text.trim().split("\n")[0] ?? ""] as const] : []));
  return Object.fromEntries(inputs.toReversed());
}

/** traceLines returns a trace as JSON lines, one event per line. */
export function traceLines(events: readonly Event[]): string {
  return events.map((event) => `${JSON.stringify(event)}\n`).join("");
}

function eventText(event: Event, from: number): string {
  const [title, ...body] = describeEvent(event);
  const at = `+${((event.atMs - from) / 1000).toFixed(3)}`.padStart(10);
  const more = body.filter((text) => text !== "").map((text) => `\n${" ".repeat(12)}${text.trimEnd().replaceAll("\n", `\n${" ".repeat(12)}`)}`);
  return `${at}  ${title}${more.join("")}`;
}

/** describeEvent returns a title and the texts below it. */
function describeEvent(event: Event): [string, ...string[]] {
  const { type, item, call, decision, outcome, usage, point } = event;
  switch (type) {
    case "turn/accepted":
      return ["accepted", ...(event.input ?? []).map((part) => part.text ?? `[${part.attachment?.name ?? part.type}]`)];
    case "item/started":
    case "item/completed":
      return item ? describeItem(item, type) : [`${type} (not stored)`];
    case "model/recorded":
      return call ? describeCall(call) : [type];
    case "decision/opened":
    case "decision/resolved":
      return decision ? describeDecision(decision, type) : [type];
    case "usage/updated":
      return [`usage: ${usageText(usage) || "none"}`];
    case "file/point":
      return [`files changed: ${point?.files ?? 0}`, point?.unrestorable ?? ""];
    case "turn/completed":
      return [`turn ended: ${outcome?.kind ?? ""}`, ...(event.issues ?? []).map(({ code, message }) => `${code}: ${message}`)];
    default:
      return [type, otherFields(event)];
  }
}

function describeItem(item: Item, type: Event["type"]): [string, ...string[]] {
  const { kind, tool, args, output, status, durationMs, text = "" } = item;
  if (kind === "codeCell") {
    return describeCell(item, type);
  }
  if (tool === undefined) {
    return [kind, text];
  }
  if (type === "item/started") {
    return [`${tool} started`, JSON.stringify(args ?? {}, undefined, 2), item.decision ? decidedText(item.decision) : ""];
  }
  const value = output?.value === undefined ? "" : JSON.stringify(output.value, undefined, 2);
  const took = durationMs === undefined ? "" : `, ${seconds(durationMs)}`;
  return [`${tool}: ${status}${took}`, item.decision ? decidedText(item.decision) : "", output?.failure?.message ?? "", output?.text ?? value];
}

function describeCall({ iteration, provider, model, stop, usage, attempts, options, durationMs }: CallRecord): [string, ...string[]] {
  const title = [`model call ${iteration}: ${provider}/${model}`, seconds(durationMs), usageText(usage) || "token usage unknown", stop ?? ""];
  const tries = attempts.filter(({ outcome }) => outcome !== "completed").map(({ outcome, status, error, waitMs }) => {
    return [`attempt ${outcome}`, status, error?.message, waitMs && `retried after ${seconds(waitMs)}`].filter(Boolean).join(", ");
  });
  const fates = (options ?? []).map(({ option, fate }) => `${option}: ${fate}`);
  return [title.filter(Boolean).join(", "), ...tries, ...fates];
}

/** describeCell describes a code cell: its code when it begins, and when it ends its calls with their durations, its result and the changed globals. */
function describeCell({ language = "code", text = "", status, cell }: Item, type: Event["type"]): [string, ...string[]] {
  if (type === "item/started" || !cell) {
    return [`${language} ${type === "item/started" ? "started" : "is incomplete and was not run"}`, text];
  }
  const calls = (cell.calls ?? []).map((call) => `${call.status}: ${callText(call)}`);
  const more = cell.moreCalls ? `${cell.moreCalls} more calls` : "";
  const changed = cell.changed?.length ? `changed: ${cell.changed.join(", ")}` : "";
  return [`${language} ${status}, ${durationText(cell.durationMs ?? 0)}`, ...calls, more, resultText(cell), errorText(cell), changed];
}

function describeDecision({ prompt, answer }: Decision, type: Event["type"]): [string, ...string[]] {
  return type === "decision/opened" ? ["question", prompt] : [`answered: ${answer?.choice ?? ""} by ${answer?.by ?? ""}`];
}

/** otherFields returns the fields that not every event has, as JSON. */
function otherFields({ sessionId: _, seq: __, atMs: ___, turnId: ____, type: _____, ...more }: Event): string {
  return Object.keys(more).length > 0 ? JSON.stringify(more, undefined, 2) : "";
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 0)} s`;
}
