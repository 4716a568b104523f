import * as vscode from "vscode";
import type { InputPart } from "../protocol";
import type { Attached } from "./messages";

/** Larger files are attached by name only; the agent can read them. */
const maxFileBytes = 64 * 1024;

/** toInput returns the parts of an input: the attachments with their names, then the text. */
export function toInput(text: string, attached: Attached[]): InputPart[] {
  const pieces = attached.map(({ label, text: piece }) => (piece === "" ? `File: ${label}\n` : `File: ${label}\n${fenced(piece)}\n`));
  return [...pieces, text].filter((part) => part !== "").map((part) => ({ type: "text", text: part }));
}

/** fenced encloses a text in a Markdown fence that is longer than any fence in it. */
function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text.replace(/\n?$/, "\n")}${fence}`;
}

/** attachmentOfSelection attaches the selection of an editor, or the whole file if nothing is selected. */
export function attachmentOfSelection(editor: vscode.TextEditor): Attached {
  const { document, selection } = editor;
  const path = vscode.workspace.asRelativePath(document.uri);
  if (selection.isEmpty) {
    return attachmentOf(path, document.getText());
  }
  return { label: `${path}:${selection.start.line + 1}-${selection.end.line + 1}`, text: document.getText(selection) };
}

/** attachmentOfFile attaches a file of the workspace. */
export async function attachmentOfFile(uri: vscode.Uri): Promise<Attached> {
  const path = vscode.workspace.asRelativePath(uri);
  const { size } = await vscode.workspace.fs.stat(uri);
  if (size > maxFileBytes) {
    return { label: path, text: "" };
  }
  const text = new TextDecoder().decode(await vscode.workspace.fs.readFile(uri));
  return attachmentOf(path, text);
}

function attachmentOf(label: string, text: string): Attached {
  return { label, text: text.length > maxFileBytes || text.includes("\0") ? "" : text };
}

/** pickAttachments lets the user select files to attach. */
export async function pickAttachments(): Promise<Attached[]> {
  const uris = await vscode.workspace.findFiles("**/*", undefined, 5000);
  const items = uris.map((uri) => ({ label: vscode.workspace.asRelativePath(uri), uri }));
  items.sort((a, b) => a.label.localeCompare(b.label));
  const picked = await vscode.window.showQuickPick(items, { canPickMany: true, placeHolder: "Select files to attach" });
  return Promise.all((picked ?? []).map(({ uri }) => attachmentOfFile(uri)));
}
