import { callText } from "../model/cells";
import { decidedText, verdictOf } from "../model/decided";
import type { Quoted } from "../model/input";
import type { CallDecision, CellCall, Item, ToolOutput } from "../protocol";
import { languageOf } from "../model/languages";
import { counted } from "../model/sessions";
import { h } from "./dom";
import type { Highlights } from "./highlights";
import { icon } from "./icons";

/** The number of characters of a long text that are shown at first. */
export const maxShownChars = 20_000;

/** icons are the icons of the states of calls. */
export const icons: Record<Item["status"], string> = { inProgress: "loading codicon-modifier-spin", completed: "check", failed: "error", unknown: "question" };

/** states are the states of calls for screen readers. */
export const states: Record<Item["status"], string> = { inProgress: "running", completed: "completed", failed: "failed", unknown: "unknown" };

/** stateIcon shows the state of a call. */
export const stateIcon = (status: Item["status"]) => h("span", { class: "icon" }, icon(icons[status], states[status]));

/** exitCodeOf returns the exit code of a command that ran and did not end with 0. */
export function exitCodeOf(output: ToolOutput | undefined): number | undefined {
  const code = (output?.value as { exitCode?: unknown } | null | undefined)?.exitCode;
  return typeof code === "number" && code !== 0 ? code : undefined;
}

/** cellCall shows a call of a cell on one line. */
export function cellCall(call: CellCall): HTMLElement {
  return h("div", { class: `call ${call.status}` }, stateIcon(call.status), h("code", { title: callText(call) }, callText(call)));
}

/** decidedElement says how a call was decided. Why a person was asked before it ran can be unfolded. */
export function decidedElement(decision: CallDecision): HTMLElement {
  const text = decidedText(decision);
  const verdict = verdictOf(decision);
  return decision.mode === "deny" || decision.choice === undefined ? h("p", { class: "decided" }, text) : h("details", { class: "decided" }, h("summary", {}, verdict), text.slice(verdict.length + 1));
}

/** outputOf returns the output of a call as text. */
export function outputOf(output: ToolOutput | undefined): string | undefined {
  return output && (output.text ?? output.failure?.message ?? (output.value === undefined ? "" : JSON.stringify(output.value, undefined, 2)));
}

/** noticeOf names the plugin of a notice without text. */
export function noticeOf(item: Item): string {
  return item.plugin ? `${item.plugin.plugin ?? ""} ${item.plugin.type}`.trim() : "";
}

const kindIcons = { terminal: "terminal", problems: "warning", folder: "folder" } as const;

/** quotedElement shows an attached text: its name, which opens a file, and the text folded by fold. */
export function quotedElement({ label, text, kind }: Quoted, highlights: Highlights, fold: (title: string, body: () => Node[]) => HTMLElement): HTMLElement {
  const name = h(kind ? "span" : "a", { class: "chip" }, icon(kind ? kindIcons[kind] : "file"), ` ${label}`);
  if (!kind) {
    name.setAttribute("href", label.replace(/-\d+$/, ""));
  }
  const code = () => {
    const element = h("code", {}, text);
    highlights.paint(element, languageOf(label.replace(/:\d+(-\d+)?$/, "")), text);
    return [h("pre", {}, element)];
  };
  return h("div", { class: "quoted" }, name, text !== "" && fold(counted(text.split("\n").length, "line"), code));
}

/** labels name the kinds of items for screen readers. */
export const labels: Record<Item["kind"], string> = {
  userMessage: "You",
  agentMessage: "Agent",
  reasoning: "Reasoning",
  toolCall: "Tool call",
  codeCell: "Code",
  fileChange: "File change",
  plan: "Plan",
  compaction: "Summary",
  notice: "Notice",
};
