import * as vscode from "vscode";
import { parse, sides, undo } from "../model/diff";
import type { FileChange } from "../protocol";
import { type Texts } from "../views/texts";

/** showChange opens what a call changed in a diff editor: beside the file itself, if that is as the call left it. */
export async function showChange(texts: Texts, change: FileChange, cwd: string): Promise<void> {
  const hunks = parse(change.diff);
  const file = vscode.Uri.joinPath(vscode.Uri.file(cwd), change.path);
  const now = await read(file);
  const before = now === undefined ? undefined : undo(now, hunks);
  const title = `${change.path} (+${change.added} \u2212${change.removed})`;
  if (before !== undefined) {
    await vscode.commands.executeCommand("vscode.diff", texts.add(change.path, before), file, title);
    return;
  }
  const part = sides(hunks);
  const [left, right] = [texts.add(change.path, part.before), texts.add(change.path, part.after)];
  await vscode.commands.executeCommand("vscode.diff", left, right, `${title}, as it was then`);
}

async function read(uri: vscode.Uri): Promise<string | undefined> {
  try {
    return new TextDecoder().decode(await vscode.workspace.fs.readFile(uri));
  } catch {
    return undefined; // it is gone: the diff itself is shown
  }
}
