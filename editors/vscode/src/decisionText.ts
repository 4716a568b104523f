import { diffText, factsOf, headline, saysAll } from "./model/approvals";
import { printable } from "./model/printable";
import type { Decision, DecisionChoice, Session } from "./protocol";

/** words maps the answers to a decision to their labels. */
export const words: Record<DecisionChoice, string> = {
  allowOnce: "Allow once",
  allowSession: "Allow for this session",
  allowAlways: "Always allow",
  reject: "Deny",
  happened: "It took effect",
  didNotRun: "It did not run",
  runAgain: "Run it again",
  tellModel: "Let the model check",
  answer: "Answer",
  open: "Open the page",
  cancelled: "Cancelled",
  unavailable: "Unavailable",
};

/** questionText returns a decision on one line, such as "Run this command? npm test (in the workspace)". It may be cut where it is shown. */
export function questionText(decision: Decision, session?: Session): string {
  const { kind, prompt, call, detail } = decision;
  if (kind !== "approval" || !detail) {
    return printable(prompt);
  }
  const paths = detail.files?.map(({ path }) => path) ?? [];
  const asked = headline(decision, session);
  const args = saysAll(asked, decision) ? "" : `${call?.name ?? ""} ${JSON.stringify(call?.args)}`;
  const other = paths.length === 0 ? args : paths.length === 1 ? "" : paths.join(", "); // the headline names a single file
  const subject = detail.command ? detail.command.command : other;
  const facts = [...factsOf(decision, session), ...(detail.hosts ?? []).map((host) => `network: ${host}`)];
  return onLine(`${asked} ${subject.trim()}${facts.length > 0 ? ` (${facts.join(", ")})` : ""}`);
}

/** onLine returns a text on one line. A line break is visible, because what follows it is another command. */
function onLine(text: string): string {
  return printable(text).replace(/\s*\n\s*/gu, " \u23ce ").replace(/\s+/gu, " ").trim();
}

/** wholeText returns all that a call will do, on as many lines as it takes. */
export function wholeText(decision: Decision, session?: Session): string {
  const { kind, prompt, call, detail } = decision;
  if (kind !== "approval" || !detail) {
    return printable(prompt);
  }
  const subject = detail.command ? detail.command.command : detail.files?.length ? diffText(detail.files) : `${call?.name ?? ""} ${JSON.stringify(call?.args, undefined, 2)}`;
  const hosts = detail.hosts?.length ? [`network: ${detail.hosts.join(", ")}`] : [];
  return printable([headline(decision, session), subject, [...factsOf(decision, session), ...hosts].join(" \u00b7 "), detail.why.text].filter(Boolean).join("\n\n"));
}
