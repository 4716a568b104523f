import * as vscode from "vscode";
import { showTexts, type Texts } from "./textDocuments";

/** Proposal is a change of a file that somebody wants to make. */
export interface Proposal {
  path: string;
  before: string;
  after: string;
  /** is aborted once nobody wants it any more */
  signal: AbortSignal;
}

/** confirm shows a person a change beside what there is, and tells whether they want it. What shows it is closed then. */
export async function confirm(texts: Texts, { path, before, after, signal }: Proposal): Promise<boolean> {
  const title = `${path} (proposed by an agent)`;
  const close = () => void vscode.window.tabGroups.close(vscode.window.tabGroups.all.flatMap((group) => group.tabs).filter((tab) => tab.label === title));
  await showTexts(texts, title, after, before);
  signal.addEventListener("abort", close);
  if (signal.aborted) {
    close(); // while it was being opened
  }
  const answer = await vscode.window.showInformationMessage(`lashd: Apply this edit to ${path}?`, "Apply", "Discard");
  if (signal.aborted) {
    void vscode.window.showInformationMessage(`lashd: The agent is no longer waiting for this edit to ${path}.`);
  }
  signal.removeEventListener("abort", close);
  close();
  return answer === "Apply" && !signal.aborted;
}
