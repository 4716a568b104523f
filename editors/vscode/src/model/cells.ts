import type { CellCall, CodeResult } from "../protocol";

/** The number of calls of a running cell that the view keeps. */
const liveCalls = 16;

/** withCall returns the calls of a running cell with one more, or with a newer state of one. The newest calls are kept, and moreCalls counts the ones before. */
export function withCall(cell: CodeResult, call: CellCall): CodeResult {
  const calls = [...(cell.calls ?? [])];
  const at = calls.findIndex(({ index }) => index >= call.index);
  if (at >= 0 && calls[at]?.index === call.index) {
    calls[at] = call;
  } else if (at !== 0 || call.index > (cell.moreCalls ?? 0)) {
    calls.splice(at < 0 ? calls.length : at, 0, call);
  }
  const kept = calls.slice(-liveCalls);
  return { ...cell, calls: kept, moreCalls: (kept[0]?.index ?? 1) - 1 };
}

/** durationText formats a duration in milliseconds. */
export function durationText(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** argumentText returns the arguments of a call as a person would name them: the value of a single text, or else JSON. */
export function argumentText(args: unknown): string {
  const values = args !== null && typeof args === "object" ? Object.values(args) : [];
  if (values.length === 0) {
    return "";
  }
  return values.length === 1 && typeof values[0] === "string" ? values[0] : JSON.stringify(args);
}

/** errorText returns the error of a cell with its place; it is empty without one. The line of code that an executor may quote at its end is left out. */
export function errorText({ error, position }: CodeResult): string {
  if (!error) {
    return "";
  }
  if (!position) {
    return `Error: ${error}`;
  }
  const quote = error.lastIndexOf("\n");
  const quoted = quote >= 0 && error.slice(quote).trim().startsWith(`${position.line} | `);
  const column = position.column === undefined ? "" : `, column ${position.column}`;
  return `Error in line ${position.line}${column}: ${quoted ? error.slice(0, quote) : error}`;
}

/** resultText returns what the code of a cell printed, and its value. */
export function resultText({ printed = "", value }: CodeResult): string {
  const text = printed.trimEnd();
  return [text, value === undefined || value === null ? "" : `Value: ${JSON.stringify(value)}`].filter(Boolean).join("\n");
}

/** callText describes a call of a cell on one line. */
export function callText({ tool, args, durationMs, status, summary = "" }: CellCall): string {
  const outcome = status === "unknown" ? "outcome unknown" : status === "failed" ? `failed: ${summary}` : summary;
  return [`${tool} ${argumentText(args)}`.trim(), status === "inProgress" ? "" : durationText(durationMs), outcome].filter(Boolean).join(" \u00b7 ");
}
