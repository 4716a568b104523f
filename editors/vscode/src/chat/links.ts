import * as vscode from "vscode";
import { fileUri } from "../openFolders";

/** openLink opens a link of a conversation: an address in the browser, a path, with a line if it has one, in the editor. */
export async function openLink(href: string, cwd: string): Promise<void> {
  const uri = vscode.Uri.parse(href);
  if (["http", "https"].includes(uri.scheme)) {
    await vscode.env.openExternal(uri);
    return;
  }
  const [path = "", line] = href.split(/[:#]L?/);
  const at = Math.max(Number(line ?? 1) - 1 || 0, 0);
  await vscode.window.showTextDocument(fileUri(cwd, path), { selection: new vscode.Range(at, 0, at, 0) });
}
