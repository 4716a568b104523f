import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import { commitPrompt, describedDiff, plainReply } from "../model/commitMessage";

/** The number of earlier commits whose subjects a model gets. */
const maxRecent = 10;

/** Repository is the part of the API of VS Code's extension for git that is used here. */
interface Repository {
  rootUri: vscode.Uri;
  inputBox: { value: string };
  diff(cached: boolean): Promise<string>;
  log(options: { maxEntries: number }): Promise<{ message: string }[]>;
}

interface GitExtension {
  getAPI(version: 1): { repositories: Repository[] };
}

/** writeCommitMessage writes a message for the staged changes, or else for all changes of files that git knows, into the input of the source control view. of is the repository of the button that was used. */
export async function writeCommitMessage(daemon: Daemon, of: { rootUri?: vscode.Uri } | undefined): Promise<void> {
  const repository = await choose(of?.rootUri);
  const diff = describedDiff(await repository.diff(true), await repository.diff(false));
  if (diff === undefined) {
    throw new Error("Git shows no changes. Stage new files first.");
  }
  const recent = await repository.log({ maxEntries: maxRecent }).catch(() => []); // a new repository has no commits
  const prompt = commitPrompt(diff, recent.map(({ message }) => message.split("\n")[0] ?? ""));
  const location = vscode.ProgressLocation.SourceControl;
  const { text } = await vscode.window.withProgress({ location, title: "lashd writes a commit message" }, () => daemon.change("completion/create", { text: prompt, label: "commit message" }));
  repository.inputBox.value = plainReply(text);
}

/** choose returns the repository in a directory, else the only one, else the one that the user selects. */
async function choose(root: vscode.Uri | undefined): Promise<Repository> {
  const git = await vscode.extensions.getExtension<GitExtension>("vscode.git")?.activate();
  const all = git?.getAPI(1).repositories ?? [];
  const named = all.find(({ rootUri }) => rootUri.toString() === root?.toString()) ?? (all.length === 1 ? all[0] : undefined);
  const items = all.map((repository) => ({ label: vscode.workspace.asRelativePath(repository.rootUri), repository }));
  const chosen = named ?? (items.length > 1 ? (await vscode.window.showQuickPick(items, { placeHolder: "Repository of the commit" }))?.repository : undefined);
  if (!chosen) {
    throw new Error(all.length === 0 ? "No git repository is open in this window." : "No repository was chosen.");
  }
  return chosen;
}
