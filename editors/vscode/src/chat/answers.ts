import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import { words } from "../decisionText";
import type { Decision, DecisionID, DecisionRespondResult, SessionID, ItemID } from "../protocol";
import type { SessionView } from "../model/session";
import type { Answer } from "../model/approvals";

/** answerDecision answers an open decision of a session. It returns what to tell the user if another client answered first. */
export async function answerDecision(daemon: Daemon, view: SessionView | undefined, decisionId: DecisionID, answer: Answer): Promise<string | undefined> {
  const decision = view?.decisions.find((d) => d.decisionId === decisionId);
  const argsHash = decision?.argsHash && answer.choice.startsWith("allow") ? { argsHash: decision.argsHash } : {};
  const r = await daemon.change("decision/respond", { decisionId, ...answer, ...argsHash });
  await openPage(decision, r);
  return r.won ? undefined : `${r.answer.by} already answered: ${words[r.answer.choice]}`;
}

/** openPage opens the page of a decision in the browser if this window has given the answer to open it. */
export async function openPage(decision: Decision | undefined, { won, answer }: DecisionRespondResult): Promise<void> {
  if (won && answer.choice === "open" && decision?.url) {
    await vscode.env.openExternal(vscode.Uri.parse(decision.url, true));
  }
}

/**
 * runAgain repeats a call to which the sandbox refused something: in the sandbox with the hosts that it lacked, or without the sandbox. The
 * model reads the output at its next step.
 */
export async function runAgain(daemon: Daemon, sessionId: SessionID, view: SessionView | undefined, itemId: ItemID, withHosts: boolean): Promise<void> {
  const item = view?.items.find((one) => one.itemId === itemId);
  const refusal = item?.output?.refusal;
  const args = withHosts ? refusal?.withHosts?.retry : refusal?.retry;
  const name = refusal?.tool ?? item?.tool;
  if (name && args !== undefined) {
    await daemon.change("tool/call", { sessionId, name, args, tell: true });
  }
}
