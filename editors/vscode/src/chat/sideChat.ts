import * as vscode from "vscode";
import type { SessionID } from "../protocol";
import { newChatPage } from "./page";
import type { Surface } from "./surface";

/** The id of the view in the side bar. */
export const viewId = "lashd.chatView";

/** The key of the session that the view shows, in the state of the workspace. */
const shownKey = "lashd.sideChat";

/** SideChat is the view in the side bar. It shows the chat of one session at a time, or an input that starts one. */
export class SideChat implements vscode.WebviewViewProvider {
  private view?: vscode.WebviewView;
  private chat?: ViewSurface;
  private id?: SessionID;

  /** add opens the chat of a session in a place. */
  constructor(private readonly state: vscode.Memento, private readonly extensionUri: vscode.Uri, private readonly add: (id: SessionID, surface: Surface) => void) {
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
    view.webview.onDidReceiveMessage((message: { type: string; text?: string }) => void (message.type === "start" && this.start(view, message.text ?? "")));
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
    view.title = "Chat";
    view.webview.options = { enableScripts: true, enableCommandUris: ["lashd.findSession"], localResourceRoots: [vscode.Uri.joinPath(this.extensionUri, "dist")] };
    view.webview.html = newChatPage(view.webview, this.extensionUri);
  }

  /** start starts a session with the input of the empty view. The input stays there if no session is started. */
  private async start(view: vscode.WebviewView, text: string) {
    await vscode.commands.executeCommand("lashd.newSessionInSideBar", undefined, text);
    if (!this.chat) {
      void view.webview.postMessage({ type: "sent", ok: false });
    }
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
