import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import { editPrompt, replacementOf } from "../model/inlineEdit";
import type { Choices } from "./choices";
import { confirmEdit } from "./proposedEdit";
import { labelText } from "../model/printable";

/** editSelection asks what to change in the selection of the active editor, shows the change as a diff, and makes it if the user accepts. */
export async function editSelection(daemon: Daemon, choices: Choices): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (!editor || editor.selection.isEmpty) {
    throw new Error("Select the text to edit first.");
  }
  const { document, selection } = editor;
  const wish = await vscode.window.showInputBox({ title: "Edit the selection", prompt: "What should change?", placeHolder: "Handle the empty list" });
  if (!wish) {
    return;
  }
  const path = vscode.workspace.asRelativePath(document.uri);
  const selected = document.getText(selection);
  const text = document.getText();
  const [start, end] = [document.offsetAt(selection.start), document.offsetAt(selection.end)];
  const prompt = editPrompt({ path, language: document.languageId, before: text.slice(0, start), selected, after: text.slice(end), wish });
  const progress = { location: vscode.ProgressLocation.Window, title: labelText(`lashd edits ${path}`) };
  const reply = await vscode.window.withProgress(progress, () => daemon.change("completion/create", { text: prompt, label: "inline edit" }));
  const after = text.slice(0, start) + replacementOf(reply.text, selected) + text.slice(end);
  if (!(await confirmEdit(choices, { path, before: text, after, signal: new AbortController().signal }))) {
    return;
  }
  if (document.getText() !== text) {
    throw new Error(`${path} changed since the request, so the edit was not made. Try again.`);
  }
  const edit = new vscode.WorkspaceEdit();
  edit.replace(document.uri, selection, replacementOf(reply.text, selected));
  await vscode.workspace.applyEdit(edit);
}
