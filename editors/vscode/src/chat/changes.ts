import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import { parse, sides, undo } from "../model/diff";
import type { FileChange, SessionDiffParams } from "../protocol";
import type { Texts } from "../views/textDocuments";

type Change = Pick<FileChange, "path" | "diff">;

/** showChange opens what a call changed in a diff editor: beside the file itself, if that is as the call left it. */
export async function showChange(texts: Texts, change: FileChange, cwd: string): Promise<void> {
  const { left, right, now } = await editors(texts, change, cwd);
  const title = `${change.path} (+${change.added} \u2212${change.removed})${now ? "" : ", earlier version"}`;
  await vscode.commands.executeCommand("vscode.diff", left, right, title);
}

/** showChanges opens all that a turn, or what a file point tells of, did to files, whichever call did it. */
export async function showChanges({ daemon, texts }: { daemon: Daemon; texts: Texts }, of: SessionDiffParams, cwd: string): Promise<void> {
  const { data, nextCursor } = await daemon.call("session/diff", { ...of, limit: 500 });
  const all = await Promise.all(data.map(async ({ path, diff = "" }) => ({ path, ...(await editors(texts, { path, diff }, cwd)) })));
  const resources = all.map(({ path, left, right }) => [vscode.Uri.joinPath(vscode.Uri.file(cwd), path), left, right]);
  await vscode.commands.executeCommand("vscode.changes", `${of.turnId === undefined ? "File changes" : "Changes of the turn"}${nextCursor ? " (first 500 files)" : ""}`, resources);
}

/** the two sides of a change, and whether the right one is the file as it is now */
async function editors(texts: Texts, change: Change, cwd: string): Promise<{ left: vscode.Uri; right: vscode.Uri; now: boolean }> {
  const hunks = parse(change.diff);
  const file = vscode.Uri.joinPath(vscode.Uri.file(cwd), change.path);
  const now = await read(file);
  const before = now === undefined ? undefined : undo(now, hunks);
  if (before !== undefined) {
    return { left: texts.add(file.path.slice(1), before), right: file, now: true }; // of another path it would look renamed
  }
  const part = sides(hunks);
  return { left: texts.add(change.path, part.before), right: texts.add(change.path, part.after), now: false };
}

async function read(uri: vscode.Uri): Promise<string | undefined> {
  try {
    return new TextDecoder().decode(await vscode.workspace.fs.readFile(uri));
  } catch {
    return undefined; // it is gone: the diff itself is shown
  }
}
