import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import { applyHunks, hunkOf, hunkSides, parse, revertHunks } from "../model/diff";
import { fileUri } from "../openFolders";
import type { FileChange, FilePreview, SessionDiffParams } from "../protocol";
import type { Texts } from "../views/textDocuments";

type Change = Pick<FileChange, "path" | "diff">;

/** showChange opens the change of a tool call in a diff editor. It shows the file itself if the file did not change afterwards. */
export async function showChange(texts: Texts, change: FileChange, cwd: string): Promise<void> {
  const { left, right, now } = await diffSides(texts, change, cwd);
  const title = `${change.path} (+${change.added} \u2212${change.removed})${now ? "" : ", earlier version"}`;
  await vscode.commands.executeCommand("vscode.diff", left, right, title);
}

/** changesTitles are the titles of editors with the changes of several files. */
export const changesTitles = { turn: "Changes of the turn", point: "File changes" };

/** showChanges opens all file changes of a turn or a file point in a multi-file diff editor. */
export async function showChanges({ daemon, texts }: { daemon: Daemon; texts: Texts }, selection: SessionDiffParams, cwd: string): Promise<void> {
  const { data, nextCursor } = await daemon.call("session/diff", { ...selection, limit: 500 });
  const all = await Promise.all(data.map(async ({ path, diff = "" }) => ({ path, ...(await diffSides(texts, { path, diff }, cwd)) })));
  const resources = all.map(({ path, left, right }) => [fileUri(cwd, path), left, right]);
  await vscode.commands.executeCommand("vscode.changes", `${changesTitles[selection.turnId === undefined ? "point" : "turn"]}${nextCursor ? " (first 500 files)" : ""}`, resources);
}

/** previewSides returns a file without and with what a call would change. If the file changed since, it returns only the parts that the diff has. */
export async function previewSides(preview: FilePreview, cwd: string): Promise<{ name: string; before: string; after: string }> {
  const hunks = (preview.hunks ?? []).map(hunkOf);
  const file = fileUri(cwd, preview.path);
  const now = preview.kind === "create" ? "" : await read(file);
  const after = now === undefined ? undefined : applyHunks(now, hunks);
  const part = now === undefined || after === undefined ? hunkSides(hunks) : { before: now, after };
  return { name: file.path.slice(1), ...part }; // both sides have the name, or VS Code shows a rename
}

/** diffSides returns both sides of a change. now reports whether the right side is the current file. */
async function diffSides(texts: Texts, change: Change, cwd: string): Promise<{ left: vscode.Uri; right: vscode.Uri; now: boolean }> {
  const hunks = parse(change.diff);
  const file = fileUri(cwd, change.path);
  const now = await read(file);
  const before = now === undefined ? undefined : revertHunks(now, hunks);
  if (before !== undefined) {
    return { left: texts.add(file.path.slice(1), before), right: file, now: true }; // the same path, or VS Code shows a rename
  }
  const part = hunkSides(hunks);
  return { left: texts.add(change.path, part.before), right: texts.add(change.path, part.after), now: false };
}

async function read(uri: vscode.Uri): Promise<string | undefined> {
  try {
    return new TextDecoder().decode(await vscode.workspace.fs.readFile(uri));
  } catch {
    return undefined; // the file was deleted: the editor shows the diff itself
  }
}
