import type { CallDecision, DecisionChoice } from "../protocol";

const answered: Partial<Record<DecisionChoice, string>> = {
  allowOnce: "A person allowed it once.",
  allowSession: "A person allowed it for the session.",
  allowAlways: "A person always allows it.",
};

/** decidedText says in a sentence or two how a tool call was decided and why. */
export function decidedText({ mode, why, choice, by }: CallDecision): string {
  const verdict = mode === "deny" ? "Denied" : "Allowed";
  if (by === "deadline") {
    return `${verdict}, because no answer came in time. Reason for the question: ${why.text}`;
  }
  if (choice !== undefined) {
    return `${mode === "deny" ? "A person denied it." : (answered[choice] ?? "A person allowed it once.")} Reason for the question: ${why.text}`;
  }
  return `${verdict}: ${why.text}`;
}
