import * as vscode from "vscode";
import { parse, sides, undo } from "../model/diff";
import type { FileChange } from "../protocol";

const scheme = "lashd-diff";

/** How many texts are kept for diff editors that may still show them. */
const mostKept = 100;

const texts = new Map<string, string>();
let next = 1;

/** provideTexts lets diff editors show what is in no file. */
export function provideTexts(): vscode.Disposable {
  return vscode.workspace.registerTextDocumentContentProvider(scheme, {
    provideTextDocumentContent: (uri) => texts.get(uri.query) ?? "This text is not kept any more.",
  });
}

/** showChange opens what a call changed in a diff editor: beside the file itself, if that is as the call left it. */
export async function showChange(change: FileChange, cwd: string): Promise<void> {
  const hunks = parse(change.diff);
  const file = vscode.Uri.joinPath(vscode.Uri.file(cwd), change.path);
  const now = await read(file);
  const before = now === undefined ? undefined : undo(now, hunks);
  const title = `${change.path} (+${change.added} \u2212${change.removed})`;
  if (before !== undefined) {
    await vscode.commands.executeCommand("vscode.diff", text(change.path, before), file, title);
    return;
  }
  const part = sides(hunks);
  await vscode.commands.executeCommand("vscode.diff", text(change.path, part.before), text(change.path, part.after), `${title}, as it was then`);
}

async function read(uri: vscode.Uri): Promise<string | undefined> {
  try {
    return new TextDecoder().decode(await vscode.workspace.fs.readFile(uri));
  } catch {
    return undefined; // it is gone: the diff itself is shown
  }
}

function text(path: string, content: string): vscode.Uri {
  const query = String(next++);
  texts.set(query, content);
  for (const old of [...texts.keys()].slice(0, -mostKept)) {
    texts.delete(old);
  }
  return vscode.Uri.from({ scheme, path: `/${path}`, query });
}
