import * as vscode from "vscode";
import type { InputPart } from "../protocol";
import type { Attached } from "./messages";

/** Files that are longer are attached by name only: the agent can read them. */
const longestFile = 64 * 1024;

/** toInput is what a person sends: what is attached comes first, each piece with its name. */
export function toInput(text: string, attached: Attached[]): InputPart[] {
  const pieces = attached.map(({ label, text: piece }) => (piece === "" ? `File: ${label}\n` : `File: ${label}\n${fenced(piece)}\n`));
  return [...pieces, text].filter((part) => part !== "").map((part) => ({ type: "text", text: part }));
}

/** fenced puts a fence around a text that is longer than any in it. */
function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text.replace(/\n?$/, "\n")}${fence}`;
}

/** ofSelection is the selection of an editor, or its whole file where nothing is selected. */
export function ofSelection(editor: vscode.TextEditor): Attached {
  const { document, selection } = editor;
  const path = vscode.workspace.asRelativePath(document.uri);
  if (selection.isEmpty) {
    return whole(path, document.getText());
  }
  return { label: `${path}:${selection.start.line + 1}-${selection.end.line + 1}`, text: document.getText(selection) };
}

/** ofFile is a file of the workspace. */
export async function ofFile(uri: vscode.Uri): Promise<Attached> {
  const path = vscode.workspace.asRelativePath(uri);
  const { size } = await vscode.workspace.fs.stat(uri);
  if (size > longestFile) {
    return { label: path, text: "" };
  }
  const text = new TextDecoder().decode(await vscode.workspace.fs.readFile(uri));
  return whole(path, text);
}

function whole(label: string, text: string): Attached {
  return { label, text: text.length > longestFile || text.includes("\0") ? "" : text };
}

/** pick asks which files are to be attached. */
export async function pick(): Promise<Attached[]> {
  const uris = await vscode.workspace.findFiles("**/*", undefined, 5000);
  const items = uris.map((uri) => ({ label: vscode.workspace.asRelativePath(uri), uri }));
  items.sort((a, b) => a.label.localeCompare(b.label));
  const picked = await vscode.window.showQuickPick(items, { canPickMany: true, placeHolder: "Select files to attach" });
  return Promise.all((picked ?? []).map(({ uri }) => ofFile(uri)));
}
