import type { ApprovalReason, CallDecision, Config, DecisionChoice } from "../protocol";
import { counted } from "./sessions";
import { isModeRule, modeOf } from "./modes";

/** reasonText says why lashd asks. It names the mode of the session if that decides. */
export function reasonText({ by, level, rule, text }: ApprovalReason, config: Config | undefined): string {
  const byMode = (by === "mode" && config?.approval?.mode === "ask") || (rule !== undefined && level === "session" && isModeRule(rule));
  return config && byMode ? `The mode \u201c${modeOf(config).name}\u201d of this session asks.` : quoted(text);
}

/** quoted returns a text of the daemon with quotation marks in place of backquotes. */
const quoted = (text: string) => text.replace(/`([^`]*)`/g, "\u201c$1\u201d");

const answered: Partial<Record<DecisionChoice, string>> = {
  allowOnce: "Allowed once.",
  allowSession: "Allowed for the session.",
  allowAlways: "Always allowed.",
};

/** verdictOf says how a tool call was decided. A decision without a question ends with a colon, before the reason for it. */
export function verdictOf({ mode, choice, by, hunks, reason, why }: CallDecision): string {
  if (mode === "allow" && hunks) {
    return `Allowed only ${counted(hunks.length, "change")}. The others were denied${reason ? `: ${reason}` : "."}`;
  }
  const verdict = mode === "allow" ? "Allowed" : why.by === "preview" ? "Not run" : "Denied";
  if (by === "deadline") {
    return `${verdict}, because no answer came in time.`;
  }
  return choice === undefined ? `${verdict}:` : mode === "deny" ? (reason ? `Denied: ${reason}` : "Denied.") : (answered[choice] ?? "Allowed once.");
}

/** decidedText says in a sentence or two how a tool call was decided and why. After an answer that denies a call, why lashd asked says nothing more. */
export function decidedText(decision: CallDecision): string {
  const { by, choice, mode, why } = decision;
  if (mode === "deny" && (choice !== undefined || by === "deadline")) {
    return verdictOf(decision);
  }
  const asked = by === "deadline" || choice !== undefined;
  return `${verdictOf(decision)} ${asked ? "Reason for the question: " : ""}${whyText(why)}`;
}

/** whyText says why a call was decided. A mode that allows edits is named in place of its rules. */
function whyText({ level, rule, text }: ApprovalReason): string {
  return rule?.action === "allow" && level === "session" && isModeRule(rule) ? "This session edits without asking." : quoted(text);
}
