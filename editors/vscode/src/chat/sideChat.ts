import * as vscode from "vscode";
import type { SessionID } from "../protocol";
import type { Surface } from "./surface";

/** The id of the view in the side bar. */
export const viewId = "lashd.chatView";

/** The key of the session that the view shows, in the state of the workspace. */
const shownKey = "lashd.sideChat";

/** SideChat is the view in the side bar. It shows the chat of one session at a time, or what to do without one. */
export class SideChat implements vscode.WebviewViewProvider {
  private view?: vscode.WebviewView;
  private chat?: ViewSurface;
  private id?: SessionID;

  /** add opens the chat of a session in a place. */
  constructor(private readonly state: vscode.Memento, private readonly add: (id: SessionID, surface: Surface) => void) {
    this.id = state.get(shownKey);
  }

  /** show shows the chat of a session in the view. */
  async show(id: SessionID): Promise<void> {
    this.id = id;
    await this.state.update(shownKey, id);
    if (this.view) {
      this.open(this.view, id);
    }
    await vscode.commands.executeCommand(`${viewId}.focus`);
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.view = view;
    view.onDidDispose(() => {
      this.chat?.leave();
      this.view = this.chat = undefined;
    });
    if (this.id === undefined) {
      this.showEmpty(view);
    } else {
      this.open(view, this.id);
    }
  }

  private open(view: vscode.WebviewView, id: SessionID) {
    this.chat?.leave();
    const chat = new ViewSurface(view, () => void this.closed(view, chat));
    this.chat = chat;
    this.add(id, chat);
  }

  private async closed(view: vscode.WebviewView, chat: ViewSurface) {
    if (this.chat === chat) {
      this.chat = this.id = undefined;
      await this.state.update(shownKey, undefined);
      this.showEmpty(view);
    }
  }

  private showEmpty(view: vscode.WebviewView) {
    const commands = { newSessionInSideBar: "New session", findSession: "Find a session\u2026" };
    view.title = "Chat";
    view.webview.options = { enableCommandUris: Object.keys(commands).map((name) => `lashd.${name}`) };
    const links = Object.entries(commands).map(([name, title]) => `<p><a href="command:lashd.${name}">${title}</a></p>`).join("");
    view.webview.html = `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="default-src 'none'"><title>lashd</title></head><body><p>No session is open here.</p>${links}</body></html>`;
  }
}

/** ViewSurface is the view in the side bar while it shows one chat. */
class ViewSurface implements Surface {
  readonly titled = false; // VS Code shows the name of the container in place of the title of its only view
  private readonly left = new vscode.EventEmitter<void>();
  readonly onClose = this.left.event;
  private open = true;

  constructor(private readonly view: vscode.WebviewView, private readonly closed: () => void) {}

  get webview(): vscode.Webview {
    return this.view.webview;
  }

  get visible(): boolean {
    return this.open && this.view.visible;
  }

  get active(): boolean {
    return false; // VS Code does not say whether a view has the focus; the chat that was shown last counts
  }

  setTitle(title: string): void {
    if (this.open) {
      this.view.title = title;
    }
  }

  reveal(): void {
    this.view.show();
  }

  close(): void {
    this.leave();
    this.closed();
  }

  onChange(listener: () => void): vscode.Disposable {
    return this.view.onDidChangeVisibility(listener);
  }

  /** leave ends the use of the view by this chat, because another one takes its place. */
  leave(): void {
    if (this.open) {
      this.open = false;
      this.left.fire();
    }
  }
}
