import * as vscode from "vscode";
import type { SessionID } from "../protocol";
import { FollowedSession } from "../sessions";
import { attachmentOfFile, attachmentOfSelection, pickAttachments } from "./attachments";
import { ChatPanel, viewType, type Context } from "./panel";
import { SideChat } from "./sideChat";
import { tabSurface, type Surface } from "./surface";

/** Chats holds the open chats of this window, at most one per session. */
export class Chats implements vscode.WebviewPanelSerializer {
  private readonly open = new Map<SessionID, ChatPanel>();
  private readonly changed = new vscode.EventEmitter<ChatPanel>();
  /** fires when a chat or its visibility changes */
  readonly onChange = this.changed.event;
  private last?: ChatPanel;

  /** the view in the side bar */
  readonly side: SideChat;

  constructor(private readonly context: Context, state: vscode.Memento) {
    this.side = new SideChat(state, (id, surface) => this.add(id, surface));
  }

  /** show opens the chat of a session where the user wants new chats, or reveals it. */
  show(id: SessionID): void {
    const existing = this.open.get(id);
    if (existing) {
      existing.reveal();
    } else if (vscode.workspace.getConfiguration("lashd.chat").get("location") === "sideBar") {
      void this.side.show(id);
    } else {
      this.showTab(id);
    }
  }

  /** move shows the chat of a session in the editor area or in the side bar. Its draft stays where it was. */
  async move(id: SessionID, where: "editor" | "sideBar"): Promise<void> {
    this.close(id);
    await (where === "sideBar" ? this.side.show(id) : this.showTab(id));
  }

  private showTab(id: SessionID) {
    this.addTab(id, vscode.window.createWebviewPanel(viewType, "lashd", vscode.ViewColumn.Active, { enableFindWidget: true }));
  }

  private addTab(id: SessionID, panel: vscode.WebviewPanel) {
    this.add(id, tabSurface(panel, this.context.extensionUri));
  }

  /** deserializeWebviewPanel restores a chat after a window reload. */
  deserializeWebviewPanel(panel: vscode.WebviewPanel, state: { sessionId?: SessionID } | undefined): Thenable<void> {
    if (state?.sessionId === undefined || this.open.has(state.sessionId)) {
      panel.dispose();
    } else {
      this.addTab(state.sessionId, panel);
    }
    return Promise.resolve();
  }

  /** visible reports whether the chat of a session is visible. */
  visible(id: SessionID): boolean {
    return this.open.get(id)?.visible ?? false;
  }

  /** active returns the chat that has the focus or had it last. */
  get active(): ChatPanel | undefined {
    return [...this.open.values()].find((chat) => chat.active) ?? this.last;
  }

  close(id: SessionID): void {
    this.open.get(id)?.close();
  }

  closeAll(): void {
    [...this.open.values()].forEach((chat) => chat.close());
  }

  attachSelection(): void {
    const editor = vscode.window.activeTextEditor;
    if (editor) {
      this.active?.attach({ type: "attached", attached: attachmentOfSelection(editor) });
    }
  }

  /** attachFile attaches a file to the active chat. Without a file, the user selects some. */
  async attachFile(uri: vscode.Uri | undefined): Promise<void> {
    for (const file of uri ? [uri] : await pickAttachments()) {
      this.active?.attach(await attachmentOfFile(file));
    }
  }

  private add(id: SessionID, panel: Surface) {
    this.open.get(id)?.close(); // a session has one chat
    const chat = new ChatPanel(panel, new FollowedSession(this.context.daemon, id, this.context.log), this.context);
    this.open.set(id, chat);
    this.last = chat;
    chat.onChange(() => {
      this.last = chat.active ? chat : this.last;
      this.changed.fire(chat);
    });
    chat.onClose(() => {
      this.open.delete(id);
      this.last = this.last === chat ? [...this.open.values()].at(-1) : this.last;
      this.changed.fire(chat);
    });
    this.changed.fire(chat);
  }

  get size(): number {
    return this.open.size;
  }
}
