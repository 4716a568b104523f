import { execFile } from "node:child_process";
import * as vscode from "vscode";
import { excludeGlob, ranked } from "../model/fileList";

/** The number of files that lists show. */
const maxFiles = 5000;

/** The largest list of git, in bytes. A larger one is not used. */
const maxList = 32 << 20;

/** WorkspaceFile is a file of an open folder. Its path begins with the name of the folder if several are open. */
export interface WorkspaceFile {
  path: string;
  uri: vscode.Uri;
}

/** workspaceFiles returns the files of the open folders that git does not ignore. Without git, it leaves out what the user's settings exclude. Open files come first. */
export async function workspaceFiles(): Promise<WorkspaceFile[]> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  const uris = (await Promise.all(folders.map(filesOf))).flat();
  const files = uris.map((uri) => ({ path: vscode.workspace.asRelativePath(uri), uri }));
  return ranked(files, openPaths(), maxFiles);
}

async function filesOf(folder: vscode.WorkspaceFolder): Promise<vscode.Uri[]> {
  const tracked = await gitFiles(folder.uri.fsPath);
  if (tracked) {
    return tracked.map((path) => vscode.Uri.joinPath(folder.uri, path));
  }
  const { files, search } = { files: vscode.workspace.getConfiguration("files", folder), search: vscode.workspace.getConfiguration("search", folder) };
  const exclude = excludeGlob(files.get("exclude", {}), search.get("exclude", {}));
  return vscode.workspace.findFiles(new vscode.RelativePattern(folder, "**/*"), exclude);
}

/** gitFiles returns the tracked and new files of a directory, or undefined if it is not in a git repository. It runs no program that the repository configures. */
function gitFiles(dir: string): Promise<string[] | undefined> {
  const args = ["-c", "core.fsmonitor=false", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"];
  return new Promise((resolve) => {
    execFile("git", args, { cwd: dir, maxBuffer: maxList }, (error, out) => resolve(error ? undefined : out.split("\0").filter((path) => path !== "")));
  });
}

function openPaths(): Set<string> {
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  return new Set(tabs.flatMap(({ input }) => (input instanceof vscode.TabInputText ? [vscode.workspace.asRelativePath(input.uri)] : [])));
}
