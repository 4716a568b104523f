import type { CallDecision, DecisionChoice } from "../protocol";

const answered: Partial<Record<DecisionChoice, string>> = {
  allowOnce: "Allowed once.",
  allowSession: "Allowed for the session.",
  allowAlways: "Always allowed.",
};

/** verdictOf says how a tool call was decided. A decision without a question ends with a colon, before the reason for it. */
export function verdictOf({ mode, choice, by }: CallDecision): string {
  const verdict = mode === "deny" ? "Denied" : "Allowed";
  if (by === "deadline") {
    return `${verdict}, because no answer came in time.`;
  }
  return choice === undefined ? `${verdict}:` : mode === "deny" ? "Denied." : (answered[choice] ?? "Allowed once.");
}

/** decidedText says in a sentence or two how a tool call was decided and why. */
export function decidedText(decision: CallDecision): string {
  const { by, choice, why } = decision;
  const asked = by === "deadline" || choice !== undefined;
  return `${verdictOf(decision)} ${asked ? "Reason for the question: " : ""}${why.text}`;
}
