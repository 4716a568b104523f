import * as vscode from "vscode";

/** tabs returns all tabs of the window. */
export function tabs(): vscode.Tab[] {
  return vscode.window.tabGroups.all.flatMap((group) => group.tabs);
}

/** uriOf returns the document of a tab; of a comparison, the changed one. */
export function uriOf(tab: vscode.Tab | undefined): vscode.Uri | undefined {
  const input = tab?.input;
  return input instanceof vscode.TabInputTextDiff ? input.modified : input instanceof vscode.TabInputText ? input.uri : undefined;
}

/** addressOf returns the document that a button of an editor title is for; without one, that of the active editor. */
export function addressOf(uri: vscode.Uri | undefined): string {
  return (uri ?? uriOf(vscode.window.tabGroups.activeTabGroup.activeTab))?.toString() ?? "";
}
