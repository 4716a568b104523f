import * as vscode from "vscode";

/** tabs returns all tabs of the window. */
export function tabs(): vscode.Tab[] {
  return vscode.window.tabGroups.all.flatMap((group) => group.tabs);
}

/** hasPage reports whether a page of VS Code itself is open, such as a walkthrough. */
export function hasPage(): boolean {
  return tabs().some(({ input }) => input === undefined);
}

/** uriOf returns the document of a tab; of a comparison, the changed one. */
export function uriOf(tab: vscode.Tab | undefined): vscode.Uri | undefined {
  const input = tab?.input;
  return input instanceof vscode.TabInputTextDiff ? input.modified : input instanceof vscode.TabInputText ? input.uri : undefined;
}

/** closeStale closes the editors of an earlier window that VS Code restores: their texts are gone. An editor of several files is known only by its title. */
export async function closeStale(schemes: readonly string[], titles: readonly string[]): Promise<void> {
  const isStale = (tab: vscode.Tab) => {
    const uri = uriOf(tab);
    return uri ? schemes.includes(uri.scheme) : titles.some((title) => tab.label.startsWith(`${title} (`));
  };
  await vscode.window.tabGroups.close(tabs().filter(isStale));
}

/** addressOf returns the document that a button of an editor title is for; without one, that of the active editor. */
export function addressOf(uri: vscode.Uri | undefined): string {
  return (uri ?? uriOf(vscode.window.tabGroups.activeTabGroup.activeTab))?.toString() ?? "";
}
