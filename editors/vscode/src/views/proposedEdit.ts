import * as vscode from "vscode";
import type { Choices } from "./choices";
import { shownWhole } from "../toasts";

/** ProposedEdit is an edit of a file that an agent proposes. */
export interface ProposedEdit {
  path: string;
  before: string;
  after: string;
  /** aborted when the agent is no longer waiting */
  signal: AbortSignal;
}

/** The key that applies an edit in its editor. */
const applyKey = process.platform === "darwin" ? "\u2318Enter" : "Ctrl+Enter";

/** confirmEdit shows an edit in a diff editor and reports whether the user applied it. Closing the editor discards the edit. */
export async function confirmEdit(choices: Choices, { path, before, after, signal }: ProposedEdit): Promise<boolean> {
  const apply = await choices.ask({ kind: "lashd-edit", title: `${path} (proposed)`, hint: `${applyKey} applies`, name: path, text: after, before, signal });
  if (signal.aborted) {
    void vscode.window.showInformationMessage(...shownWhole(`lashd: The agent is no longer waiting for this edit to ${path}.`, "Close"));
  }
  return apply && !signal.aborted;
}
