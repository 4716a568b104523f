import * as vscode from "vscode";
import type { Commands } from "../commands";
import { toastOf } from "../model/toast";
import { editScheme, type Texts } from "./textDocuments";
import { shownWhole } from "../toasts";

/** ProposedEdit is an edit of a file that an agent proposes. */
export interface ProposedEdit {
  path: string;
  before: string;
  after: string;
  /** aborted when the agent is no longer waiting */
  signal: AbortSignal;
}

/** The proposals that wait for an answer, by the address of the proposed text. */
const waiting = new Map<string, (apply: boolean) => void>();

/** proposalCommands apply or discard a proposed edit. Buttons of its editor and links of its notification run them with its address. */
export const proposalCommands: Commands = {
  applyEdit: (of: vscode.Uri | string) => waiting.get(String(of))?.(true),
  discardEdit: (of: vscode.Uri | string) => waiting.get(String(of))?.(false),
};

/**
 * confirmEdit shows an edit in a diff editor and reports whether the user applied it: with the buttons of the editor, or in a notification
 * that stays. Closing the editor discards the edit. It closes the editor and the notification afterwards.
 */
export async function confirmEdit(texts: Texts, { path, before, after, signal }: ProposedEdit): Promise<boolean> {
  const title = `${path} (proposed)`;
  const proposed = texts.add(path, after, editScheme);
  await vscode.commands.executeCommand("vscode.diff", texts.add(path, before, editScheme), proposed, title, { preview: false }); // another file does not take its editor
  const apply = await answerTo(proposed, title, path, signal);
  await vscode.window.tabGroups.close(vscode.window.tabGroups.all.flatMap((group) => group.tabs).filter((tab) => tab.label === title));
  if (signal.aborted) {
    void vscode.window.showInformationMessage(...shownWhole(`lashd: The agent is no longer waiting for this edit to ${path}.`, "Close"));
  }
  return apply && !signal.aborted;
}

/** answerTo waits until the user answers or closes the editor, or until the agent is no longer waiting. */
function answerTo(proposed: vscode.Uri, title: string, path: string, signal: AbortSignal): Promise<boolean> {
  const id = proposed.toString();
  const answer = new Promise<boolean>((resolve) => {
    waiting.set(id, resolve);
    signal.addEventListener("abort", () => resolve(false));
    void (signal.aborted && resolve(false)); // aborted while the diff editor opened
  });
  const closed = vscode.window.tabGroups.onDidChangeTabs((tabs) => tabs.closed.some((tab) => tab.label === title) && waiting.get(id)?.(false));
  ask(id, path, answer);
  return answer.finally(() => {
    closed.dispose();
    waiting.delete(id);
  });
}

/** ask shows a notification until the edit is answered. A progress is the only notification that stays and that an extension can close. */
function ask(id: string, path: string, answer: Promise<unknown>) {
  const links = [{ label: "Apply", command: "lashd.applyEdit", args: [id] }, { label: "Discard", command: "lashd.discardEdit", args: [id] }];
  void vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title: "lashd" }, (progress) => {
    progress.report({ message: toastOf(`Apply this edit to ${path}?`, links) });
    return answer.then(() => undefined);
  });
}
