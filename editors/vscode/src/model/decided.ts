import type { CallDecision, DecisionChoice } from "../protocol";

const answered: Partial<Record<DecisionChoice, string>> = {
  allowOnce: "A person allowed it once.",
  allowSession: "A person allowed it for the session.",
  allowAlways: "A person always allows it.",
};

/** verdictOf says how a tool call was decided. A decision without a question ends with a colon, before the reason for it. */
export function verdictOf({ mode, choice, by }: CallDecision): string {
  const verdict = mode === "deny" ? "Denied" : "Allowed";
  if (by === "deadline") {
    return `${verdict}, because no answer came in time.`;
  }
  return choice === undefined ? `${verdict}:` : mode === "deny" ? "A person denied it." : (answered[choice] ?? "A person allowed it once.");
}

/** decidedText says in a sentence or two how a tool call was decided and why. */
export function decidedText(decision: CallDecision): string {
  const { by, choice, why } = decision;
  const asked = by === "deadline" || choice !== undefined;
  return `${verdictOf(decision)} ${asked ? "Reason for the question: " : ""}${why.text}`;
}
