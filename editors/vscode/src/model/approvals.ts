import type { Decision, DecisionChoice, FilePreview, Session, ToolCall } from "../protocol";
import { question } from "./callWords";
import type { TextHunk } from "./diff";

/** Answer is an answer to a decision with what an approval may add to it. */
export interface Answer {
  choice: DecisionChoice;
  value?: unknown;
  /** run with these arguments instead */
  args?: unknown;
  /** make only these changes, counted from 0 over all files */
  hunks?: number[];
  /** index into the decision's widths; absent: exactly this call */
  width?: number;
  /** why the call is denied, or the changes that hunks leaves out; the model reads it */
  reason?: string;
}

/** Width is something that an answer for more than one call can cover. */
export interface Width {
  text: string;
  /** absent: exactly this call */
  index?: number;
}

/** isLasting reports whether a choice covers later calls, too. */
export function isLasting(choice: DecisionChoice): boolean {
  return choice === "allowSession" || choice === "allowAlways";
}

/** widthsOf returns what an answer can cover, with the proposal first. Exactly this call is always among them. */
export function widthsOf({ detail, call, varying }: Decision): Width[] {
  const widths: Width[] = (detail?.widths ?? []).map(({ text }, index) => ({ text, index }));
  if (detail?.widths?.some(({ rule }) => rule === undefined)) {
    return widths;
  }
  const text = varying ? `${call?.name ?? ""} calls with the same arguments, except that ${varying.join(" and ")} may differ` : "exactly this call";
  return [...widths, { text }];
}

/** hunkCount returns the number of changes from which a person can choose: 0 if there are fewer than two, or if a diff is incomplete. */
export function hunkCount({ detail }: Decision): number {
  const files = detail?.files ?? [];
  if (!detail?.editable || files.some(isIncomplete)) {
    return 0;
  }
  const count = files.reduce((sum, { hunks = [] }) => sum + hunks.length, 0);
  return count < 2 ? 0 : count;
}

/** isEditable reports whether the arguments of a call can be edited. The changes of files can be chosen instead. */
export function isEditable({ detail, call }: Decision): boolean {
  return detail?.editable === true && call !== undefined && !detail.files?.length;
}

/** isIncomplete reports whether the diff of a file lacks changes. */
export function isIncomplete({ cut, binary, problem }: FilePreview): boolean {
  return [cut, binary, problem].some(Boolean);
}

/** leavesSandbox reports whether a command runs outside the sandbox that the other commands of the session run in. */
export function leavesSandbox({ detail }: Decision, session?: Session): boolean {
  const mode = session?.config.approval?.sandbox;
  return detail?.command?.outside === true && (detail.why.by === "outside" || mode === "workspace" || mode === "readOnly");
}

const verbs: Record<FilePreview["kind"], string> = { create: "Create", change: "Change", delete: "Delete" };

/** headline asks the question of an approval. It says at once that a command leaves the sandbox. */
export function headline(decision: Decision, session?: Session): string {
  const { detail } = decision;
  const [file, ...more] = detail?.files ?? [];
  if (detail?.command) {
    return leavesSandbox(decision, session) ? "Run outside the sandbox?" : "Run this command?";
  }
  if (file) {
    return more.length > 0 ? `Change ${more.length + 1} files?` : `${verbs[file.kind]} ${file.path}?`;
  }
  return decision.call ? question({ tool: decision.call.name, args: decision.call.args, title: detail?.title }, { cwd: session?.cwd ?? "", tasks: [] }) : "Allow this tool call?";
}

/** saysAll reports whether the headline of an approval has all arguments of its call. Words that the provider of a tool has chosen are no arguments. */
export function saysAll(text: string, { call, detail }: Decision): boolean {
  const foreign = detail?.title === undefined || detail.title.foreign === true;
  return Object.values((call?.args ?? {}) as Record<string, unknown>).every((value) => !foreign && typeof value === "string" && text.includes(value));
}

/** fileTitle names a file and what happens to it. */
export function fileTitle({ kind, path }: FilePreview): string {
  return `${verbs[kind]} ${path}`;
}

/** tally returns the number of lines that a call adds to a file and removes from it. */
export function tally({ added = 0, removed = 0 }: FilePreview): string {
  return `+${added} \u2212${removed}`;
}

/** factsOf returns where a command runs, and the arguments that the card shows nowhere else. */
export function factsOf(decision: Decision, session?: Session): string[] {
  const { detail, call } = decision;
  const command = detail?.command;
  if (!command) {
    return [];
  }
  const shown = ["command", "workdir", "outside", "hosts"];
  const args = Object.entries((call?.args ?? {}) as Record<string, unknown>).filter(([name]) => !shown.includes(name));
  return [
    ...(call && call.name !== "shell" ? [call.name] : []),
    placeText(command.dir, session?.cwd),
    ...(command.outside && !leavesSandbox(decision, session) ? ["no sandbox"] : []),
    ...args.map(([name, value]) => `${name} ${JSON.stringify(value)}`),
  ];
}

/** placeText names a directory, relative to the workspace if it is in it. */
function placeText(dir: string, cwd?: string): string {
  if (dir === cwd || dir === "") {
    return "in the workspace";
  }
  const inside = cwd !== undefined && dir.startsWith(`${cwd}/`);
  return `in ${inside ? dir.slice(cwd.length + 1) : dir}`;
}

/** missingText says what the diff of a file does not show; "" if it shows all. */
export function missingText(file: FilePreview): string {
  const { problem, binary, cut, hunks = [], added = 0, removed = 0 } = file;
  if (problem) {
    return `There is no diff: ${problem}`;
  }
  if (binary) {
    return "The file is not text, so there is no diff.";
  }
  const shown = hunks.flatMap(({ text }) => text.split("\n")).filter((line) => /^[+-]/.test(line)).length;
  return cut ? `The diff is too long: ${added + removed - shown} changed lines are not in it.` : "";
}

/** DiffLine is a line of a hunk with its number: in the new file, or for a removed line in the old one. */
export interface DiffLine {
  number?: number;
  mark: "+" | "-" | " ";
  text: string;
}

/** linesOf returns the lines of a hunk. */
export function linesOf({ oldStart, newStart, text }: TextHunk): DiffLine[] {
  let [before, after] = [oldStart, newStart];
  return text.replace(/\n$/, "").split("\n").map((line): DiffLine => {
    const rest = line.slice(1);
    switch (line[0]) {
      case "+":
        return { number: after++, mark: "+", text: rest };
      case "-":
        return { number: before++, mark: "-", text: rest };
      case "\\":
        return { mark: " ", text: "(no newline at the end of the file)" };
      default:
        before++;
        return { number: after++, mark: " ", text: rest };
    }
  });
}

/** changedLine returns the number of the first line that a hunk changes: in the new file, or in the old one if it is removed. */
export function changedLine(hunk: TextHunk): number {
  return linesOf(hunk).find(({ mark }) => mark !== " ")?.number ?? Math.max(hunk.newStart, 1);
}

/** diffText returns the changes of files as text. */
export function diffText(files: FilePreview[]): string {
  const part = (file: FilePreview) => [`${fileTitle(file)} ${tally(file)}`, ...(file.hunks ?? []).map(({ text }) => text.trimEnd()), missingText(file)].filter(Boolean).join("\n");
  return files.map(part).join("\n\n");
}

/** withCommand returns the arguments of a call with another command. */
export function withCommand({ args }: ToolCall, command: string): unknown {
  return { ...(args as Record<string, unknown>), command };
}

/** pageOf returns the address of a page in three parts, of which the second is the host, and the question without it. */
export function pageOf({ prompt, url }: Decision): { question: string; parts: [string, string, string] } | undefined {
  const [, before, host, after] = /^(https?:\/\/)([^/?#]*)(.*)$/u.exec(url ?? "") ?? [];
  return before && host ? { question: prompt.split("\n\n")[0] ?? prompt, parts: [before, host, after ?? ""] } : undefined;
}

/** timeLeft says when the default answer applies, such as "Denies automatically in 9:41". */
export function timeLeft({ default: choice }: Decision, ms: number): string {
  const labels: Partial<Record<DecisionChoice, string>> = { allowOnce: "Allows automatically", reject: "Denies automatically", tellModel: "Leaves it to the model" };
  const seconds = Math.max(0, Math.round(ms / 1000));
  return `${labels[choice] ?? "Closes"} in ${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

/** timesOf returns when the default answers of decisions apply, by the clock of this program. The clock of the daemon may differ, so only its durations count. */
export function timesOf(decisions: Decision[], known: Record<string, number>, now: number): Record<string, number> {
  return Object.fromEntries(
    decisions.flatMap(({ decisionId, deadlineAtMs, openedAtMs, remainingMs }) =>
      deadlineAtMs > 0 ? [[decisionId, known[decisionId] ?? now + (remainingMs ?? deadlineAtMs - openedAtMs)]] : [],
    ),
  );
}

/** Deadlines remembers when the default answers to decisions apply, from the time at which this program learned of them. */
export class Deadlines {
  private times: Record<string, number> = {};

  /** left returns the time in ms that is left for each open decision. */
  left(open: Decision[]): Record<string, number> {
    const now = Date.now();
    this.times = timesOf(open, this.times, now);
    return Object.fromEntries(Object.entries(this.times).map(([id, end]) => [id, end - now]));
  }
}
