import { resolve } from "node:path";
import * as vscode from "vscode";
import { editorPath, FolderLinks, type Folder } from "./model/folders";

const links = new FolderLinks();

/** openFolders returns the folders that are open in this window. */
export function openFolders(): Folder[] {
  return links.resolve(vscode.workspace.workspaceFolders?.map(({ uri }) => uri.fsPath) ?? []);
}

/** realFolders returns the paths of the open folders without symbolic links. */
export function realFolders(): string[] {
  return openFolders().map(({ real }) => real);
}

/** fileUri returns the document of a file of a session. A relative path starts at its working directory. */
export function fileUri(cwd: string, path: string): vscode.Uri {
  return vscode.Uri.file(editorPath(openFolders(), resolve(cwd, path)));
}
