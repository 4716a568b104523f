import * as vscode from "vscode";
import type { Texts } from "./textDocuments";

/** ProposedEdit is an edit of a file that an agent proposes. */
export interface ProposedEdit {
  path: string;
  before: string;
  after: string;
  /** aborted when the agent is no longer waiting */
  signal: AbortSignal;
}

/** confirmEdit shows an edit in a diff editor and reports whether the user applied it. It closes the diff editor afterwards. */
export async function confirmEdit(texts: Texts, { path, before, after, signal }: ProposedEdit): Promise<boolean> {
  const title = `${path} (proposed)`;
  const close = () => void vscode.window.tabGroups.close(vscode.window.tabGroups.all.flatMap((group) => group.tabs).filter((tab) => tab.label === title));
  await vscode.commands.executeCommand("vscode.diff", texts.add(path, before), texts.add(path, after), title); // the name has the language
  signal.addEventListener("abort", close);
  if (signal.aborted) {
    close(); // aborted while the diff editor opened
  }
  const answer = await vscode.window.showInformationMessage(`lashd: Apply this edit to ${path}?`, "Apply", "Discard");
  if (signal.aborted) {
    void vscode.window.showInformationMessage(`lashd: The agent is no longer waiting for this edit to ${path}.`);
  }
  signal.removeEventListener("abort", close);
  close();
  return answer === "Apply" && !signal.aborted;
}
