import * as vscode from "vscode";
import type { SessionID } from "../protocol";
import { FollowedSession } from "../sessions";
import { attachmentOfFile, attachmentOfSelection, pickAttachments } from "./attachments";
import { ChatPanel, viewType, type Context, type Given } from "./panel";
import { SideChat } from "./sideChat";
import { placeOfNew, type Moved, type Place } from "./place";
import { tabSurface, type Surface } from "./surface";
import { UnusedSessions } from "./unused";
import { shownWhole, type Say } from "../toasts";

/** The key of the place to which the user moved a chat last, in the state of the workspace. */
const placeKey = "lashd.chatPlace";

/** Chats holds the open chats of this window, at most one per session. */
export class Chats implements vscode.WebviewPanelSerializer {
  private readonly open = new Map<SessionID, ChatPanel>();
  private readonly changed = new vscode.EventEmitter<ChatPanel>();
  /** fires when a chat or its visibility changes */
  readonly onChange = this.changed.event;
  private readonly late = new Map<SessionID, Given>(); // messages for chats of the side bar that is not loaded yet
  private last?: ChatPanel;

  /** the view in the side bar */
  readonly side: SideChat;
  private readonly unused: UnusedSessions;
  private moving?: SessionID; // the session whose chat gets another place

  constructor(private readonly context: Omit<Context, "used" | "say">, private readonly state: vscode.Memento) {
    this.side = new SideChat(state, context.extensionUri, (id, surface) => this.add(id, surface));
    this.unused = new UnusedSessions(context.daemon, state, context.log);
  }

  /** showNew shows a session without messages in a place, and returns it: an open one, or the one that create creates. */
  async showNew(cwd: string, driver: { driver?: string }, create: () => Promise<SessionID>, place?: Place): Promise<SessionID> {
    const views = new Map([...this.open].map(([id, chat]) => [id, chat.followed.view]));
    let id = this.unused.find({ cwd, ...driver }, views);
    if (id === undefined) {
      id = await create();
      this.unused.add(id, { cwd, ...driver });
    }
    await (place && (!this.open.has(id) || place !== this.placeOf(id)) ? this.move(id, place) : this.show(id));
    return id;
  }

  /** replace shows a session without messages in the place of a chat, whose session stays in the list. */
  async replace(old: ChatPanel, cwd: string, driver: { driver?: string }, create: () => Promise<SessionID>): Promise<void> {
    const place = this.placeOf(old.followed.id);
    await this.showNew(cwd, driver, create, place);
    if (this.active !== old && place === "editor") {
      old.close();
    }
  }

  /** show opens the chat of a session, or reveals it. It opens in the place of the chat of another session if near names one, else where the user wants new chats. */
  show(id: SessionID, near?: SessionID): void {
    const existing = this.open.get(id);
    if (existing) {
      existing.reveal();
      this.use(existing);
    } else if (this.placeOf(near) === "sideBar") {
      void this.side.show(id);
    } else {
      this.showTab(id);
    }
  }

  /** placeOf returns the place of the chat of a session, or where the user wants new chats. */
  placeOf(id: SessionID | undefined): Place {
    const chat = id === undefined ? undefined : this.open.get(id);
    return chat ? (chat.column === undefined ? "sideBar" : "editor") : placeOfNew(this.state.get<Moved>(placeKey), wanted());
  }

  /** keepIn moves the chat of a session. Later chats open there, too. */
  async keepIn(id: SessionID, place: Place): Promise<void> {
    await this.state.update(placeKey, { place, setting: wanted() } satisfies Moved);
    await this.move(id, place);
  }

  /** move shows the chat of a session in the editor area or in the side bar. Its draft stays where it was. */
  async move(id: SessionID, where: Place): Promise<void> {
    this.leave(id);
    await (where === "sideBar" ? this.side.show(id) : this.showTab(id));
  }

  /** give shows the chat of a session, and passes a message to its page. */
  give(id: SessionID, message: Given): void {
    this.show(id);
    const chat = this.open.get(id);
    if (chat) {
      chat.give(message);
    } else {
      this.late.set(id, message);
    }
  }

  private showTab(id: SessionID) {
    this.addTab(id, vscode.window.createWebviewPanel(viewType, "lashd", this.column(), { enableFindWidget: true }));
  }

  /** column returns where a new chat opens: with the other chats, or beside the text that the user works on. */
  private column(): vscode.ViewColumn {
    const chat = [...this.open.values()].find(({ column }) => column !== undefined);
    const text = vscode.window.tabGroups.activeTabGroup.activeTab?.input instanceof vscode.TabInputText;
    return chat?.column ?? (text ? vscode.ViewColumn.Beside : vscode.ViewColumn.Active);
  }

  private addTab(id: SessionID, panel: vscode.WebviewPanel) {
    this.add(id, tabSurface(panel, this.context.extensionUri));
  }

  /** deserializeWebviewPanel restores a chat after a window reload. */
  deserializeWebviewPanel(panel: vscode.WebviewPanel, state: { sessionId?: SessionID } | undefined): Thenable<void> {
    if (state?.sessionId === undefined || this.open.has(state.sessionId)) {
      panel.dispose();
    } else {
      const before = this.last;
      this.addTab(state.sessionId, panel);
      this.last = panel.active ? this.last : (before ?? this.last);
    }
    return Promise.resolve();
  }

  /** isOpen reports whether the chat of a session is open. */
  isOpen(id: SessionID): boolean {
    return this.open.has(id);
  }

  /** visible reports whether the chat of a session is visible. */
  visible(id: SessionID): boolean {
    return this.open.get(id)?.visible ?? false;
  }

  /** say shows a text in the chat of a session, or in the active chat; as a notification if that chat is hidden. */
  readonly say: Say = (sessionId, text, ...buttons) => {
    const chat = sessionId === undefined ? this.active : this.open.get(sessionId);
    return chat?.visible ? chat.say(text, buttons) : vscode.window.showInformationMessage(...shownWhole(`lashd: ${text}`, ...buttons));
  };

  /** active returns the chat that the user turned to last. */
  get active(): ChatPanel | undefined {
    return this.last;
  }

  private use(chat: ChatPanel) {
    if (this.last !== chat) {
      this.last = chat;
      this.changed.fire(chat);
    }
  }

  /** leave closes a chat that gets another place. */
  private leave(id: SessionID) {
    this.moving = id;
    this.open.get(id)?.close();
    this.moving = undefined;
  }

  close(id: SessionID): void {
    this.open.get(id)?.close();
  }

  closeAll(): void {
    [...this.open.values()].forEach((chat) => chat.close());
  }

  /** attachSelection attaches the selection of an editor to the active chat, which does not cover the editor. */
  attachSelection(editor: vscode.TextEditor): void {
    const chat = this.active;
    if (chat?.column !== undefined && chat.column === editor.viewColumn) {
      chat.reveal(vscode.ViewColumn.Beside);
    }
    chat?.give({ type: "attached", attached: attachmentOfSelection(editor) });
  }

  /** attachFile attaches a file to the active chat. Without a file, the user selects some. */
  async attachFile(uri: vscode.Uri | undefined): Promise<void> {
    for (const file of uri ? [uri] : await pickAttachments()) {
      this.active?.give(await attachmentOfFile(file));
    }
  }

  private add(id: SessionID, panel: Surface) {
    this.leave(id); // a session has one chat
    const context = { ...this.context, say: this.say, used: () => this.unused.used(id) };
    const chat = new ChatPanel(panel, new FollowedSession(this.context.daemon, id, this.context.log), context);
    this.open.set(id, chat);
    this.last = chat;
    const late = this.late.get(id);
    this.late.delete(id);
    if (late) {
      chat.give(late);
    }
    chat.onUse(() => this.use(chat));
    chat.onChange(() => this.changed.fire(chat));
    chat.onClose(() => {
      this.open.delete(id);
      void (this.moving === id ? undefined : this.unused.closed(id, chat.followed.view));
      this.last = this.last === chat ? [...this.open.values()].at(-1) : this.last;
      this.changed.fire(chat);
    });
    this.changed.fire(chat);
  }

  get size(): number {
    return this.open.size;
  }
}

/** wanted returns where chats open by the settings. */
function wanted(): Place {
  return vscode.workspace.getConfiguration("lashd.chat").get<Place>("location", "editor");
}
