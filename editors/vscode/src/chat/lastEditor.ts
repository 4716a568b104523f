import * as vscode from "vscode";

/** Edited is the part of a text editor that can be attached. */
export type Edited = Pick<vscode.TextEditor, "document" | "selection">;

let last: Edited | undefined;

/** watchEditors remembers the editor that the user used last. A chat in the same group hides it. */
export function watchEditors(): vscode.Disposable {
  const remember = (editor: vscode.TextEditor | undefined) => (last = editor ? { document: editor.document, selection: editor.selection } : last);
  remember(vscode.window.activeTextEditor);
  return vscode.Disposable.from(vscode.window.onDidChangeActiveTextEditor(remember), vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => remember(textEditor)));
}

/** lastEditor returns the active editor, else the one that the user used last, while its document is open. */
export function lastEditor(): Edited | undefined {
  return vscode.window.activeTextEditor ?? (last?.document.isClosed ? undefined : last);
}
