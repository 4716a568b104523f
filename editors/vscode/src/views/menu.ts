import * as vscode from "vscode";
import { selectedOf, withMark, type Entry } from "../model/menu";

/**
 * chooseFrom shows entries and returns the one that the user chooses, or undefined if the user cancels. The current entry is selected at first, so
 * that Enter changes nothing. later replaces the entries while the menu is open; if it fails, they stay.
 */
export function chooseFrom<T extends Entry>(placeholder: string, entries: T[], later?: Promise<T[]>): Promise<T | undefined> {
  const menu = Object.assign(vscode.window.createQuickPick<T>(), { placeholder, matchOnDescription: true, matchOnDetail: true, busy: later !== undefined });
  const show = (all: T[]) => {
    const [active] = menu.activeItems;
    const shown = all.map(withMark);
    menu.items = shown;
    menu.activeItems = selectedOf(shown, active);
  };
  show(entries);
  void later?.then(show, () => undefined).finally(() => (menu.busy = false));
  return new Promise((resolve) => {
    menu.onDidAccept(() => {
      resolve(menu.selectedItems[0]);
      menu.hide();
    });
    menu.onDidHide(() => {
      resolve(undefined);
      menu.dispose();
    });
    menu.show();
  });
}
