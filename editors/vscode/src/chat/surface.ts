import * as vscode from "vscode";

/** Surface is the place of a chat: a tab of the editor area, or the view in the side bar. */
export interface Surface {
  readonly webview: vscode.Webview;
  readonly visible: boolean;
  /** the user works in it */
  readonly active: boolean;
  /** the column of a tab; absent in the side bar */
  readonly column?: vscode.ViewColumn;
  /** it shows the title of the chat at all times, so that the page needs none */
  readonly titled: boolean;
  setTitle(title: string): void;
  /** reveal shows the chat, in another column if one is given. */
  reveal(column?: vscode.ViewColumn): void;
  close(): void;
  /** fires when it becomes visible, hidden, active or inactive */
  onChange(listener: () => void): vscode.Disposable;
  /** fires when the chat has lost the place */
  onClose(listener: () => void): vscode.Disposable;
}

/** tabSurface returns a tab of the editor area as the place of a chat. */
export function tabSurface(panel: vscode.WebviewPanel, extensionUri: vscode.Uri): Surface {
  const icon = (theme: string) => vscode.Uri.joinPath(extensionUri, "media", `lashd-${theme}.svg`);
  panel.iconPath = { light: icon("light"), dark: icon("dark") };
  let open = true;
  panel.onDidDispose(() => (open = false));
  return {
    webview: panel.webview,
    get visible() {
      return open && panel.visible;
    },
    get active() {
      return open && panel.active;
    },
    titled: true,
    setTitle: (title) => {
      panel.title = title;
    },
    get column() {
      return open ? panel.viewColumn : undefined;
    },
    reveal: (column) => {
      panel.reveal(column);
    },
    close: () => {
      panel.dispose();
    },
    onChange: (listener) => panel.onDidChangeViewState(() => listener()),
    onClose: (listener) => panel.onDidDispose(() => listener()),
  };
}
