import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import { messageOf } from "../daemon/daemon";
import { Deadlines } from "../model/approvals";
import { titleOf } from "../model/sessions";
import type { Decision, Event, SessionID } from "../protocol";
import type { FollowedSession } from "../sessions";
import type { Texts } from "../views/textDocuments";
import type { Highlighter } from "./highlighter";
import type { FromWebview, Options, Recent, ToWebview } from "./messages";
import { page } from "./page";
import { Notices } from "./notices";
import type { Surface } from "./surface";
import { Requests } from "./requests";
import { shownWhole, type Say } from "../toasts";
import { Untrusted } from "./untrusted";

export const viewType = "lashd.chat";

/** ofPage are the messages that a page sends without a user who works in it. */
const ofPage = new Set<FromWebview["type"]>(["ready", "older", "picture", "highlight", "context", "resources", "store"]);

/** The delay in which events for a webview are batched. */
const batchMs = 30;

/** Context is the part of the extension that a chat uses. */
export interface Context {
  daemon: Daemon;
  extensionUri: vscode.Uri;
  log: vscode.LogOutputChannel;
  texts: Texts;
  say: Say;
  highlighter: Highlighter;
  /** fires when the colors of code change */
  onTheme: vscode.Event<void>;
  /** opens one of the files that an open approval would change, in a diff editor; cwd is the directory of its session */
  showProposed(decision: Decision, file: number, cwd: string): Promise<void>;
  /** returns other sessions of the folder of a session, newest first */
  recent(id: SessionID): Recent[];
  /** returns the title of a session; undefined if it is not known */
  titleOf(id: SessionID): string | undefined;
  /** reports whether the daemon is that of the demo */
  inDemo(): boolean;
  /** lets the user review and trust a plugin of a folder */
  review(plugin: string, cwd: string): Promise<void>;
  /** opens the chat of another session; near is a session in whose place it opens */
  open(id: SessionID, near?: SessionID): void;
  /** says that the session gets a message */
  used(): void;
}

/** Given is a message to a page from outside of its chat. */
export type Given = ToWebview & { type: "attached" | "file" | "compaction" | "draft" | "undraft" | "context" | "goTo" | "focus" };

/** ChatPanel shows one session in its place. It stores only the draft; all other state comes from the daemon. */
export class ChatPanel {
  private readonly closing: vscode.Disposable[] = [];
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onChange = this.changed.event;
  private readonly used = new vscode.EventEmitter<void>();
  /** fires when the user turns to the chat: it gets the focus, or its page says what the user does */
  readonly onUse = this.used.event;
  private readonly closed = new vscode.EventEmitter<void>();
  readonly onClose = this.closed.event;
  private batch: Event[] = [];
  private timer?: NodeJS.Timeout;
  private ready = false;
  private undelivered: ToWebview[] = []; // messages for a page that is not ready yet
  private open = true;
  private readonly deadlines = new Deadlines();
  private readonly requests: Requests;
  private readonly untrusted: Untrusted;
  private readonly notices = new Notices((message) => this.post(message));

  constructor(private readonly panel: Surface, readonly followed: FollowedSession, private readonly context: Context) {
    this.requests = new Requests(context, followed, (message) => this.post(message));
    this.untrusted = new Untrusted(context.daemon, followed, (message) => this.post(message), context.log);
    panel.webview.options = { enableScripts: true, localResourceRoots: [vscode.Uri.joinPath(context.extensionUri, "dist")] };
    this.closing.push(
      this.untrusted,
      panel.onClose(() => this.dispose()),
      panel.onChange(() => this.visibilityChanged()),
      panel.webview.onDidReceiveMessage((message: FromWebview) => void this.receive(message)),
      followed.onChange((change) => ("events" in change ? this.enqueue(change.events) : this.reset())),
      followed.onGone((reason) => this.closeBecause(reason)),
      context.daemon.onState((state) => this.post({ type: "connected", connected: state.kind === "ready" })),
      context.onTheme(() => this.post({ type: "theme" })),
      vscode.workspace.onDidChangeConfiguration((e) => e.affectsConfiguration("lashd.chat") && this.reset()),
    );
    panel.webview.html = page(panel.webview, context.extensionUri, followed.id, panel.titled);
  }

  get active(): boolean {
    return this.open && this.panel.active;
  }

  get visible(): boolean {
    return this.open && this.panel.visible;
  }

  get column(): vscode.ViewColumn | undefined {
    return this.panel.column;
  }

  reveal(column?: vscode.ViewColumn): void {
    this.panel.reveal(column);
  }

  close(): void {
    this.panel.close();
  }

  /** give reveals the chat, and passes a message to its page. */
  give(message: Given): void {
    this.reveal();
    this.post(message);
  }

  /** say shows a text with buttons above the input. It returns the chosen button; undefined if the user closes the text or the chat. */
  say(text: string, buttons: string[]): Promise<string | undefined> {
    return this.notices.show(text, buttons);
  }

  /** visibilityChanged handles hiding and showing. VS Code unloads a hidden page; it sends "ready" when it is loaded again. */
  private visibilityChanged() {
    this.ready &&= this.panel.visible;
    if (this.panel.active) {
      this.used.fire();
    }
    this.changed.fire();
  }

  private post(message: ToWebview) {
    if (this.ready) {
      void this.panel.webview.postMessage(message);
    } else if (["attached", "file", "draft", "undraft", "compaction", "context", "goTo"].includes(message.type)) {
      this.undelivered.push(message);
    }
  }

  private reset() {
    const { view } = this.followed;
    clearTimeout(this.timer);
    this.timer = undefined;
    this.batch = [];
    if (view) {
      this.panel.setTitle(titleOf(view.session));
      const { source } = view.session.relation;
      const left = this.deadlines.left(view.decisions);
      this.post({ type: "reset", view, options: { ...options(), demo: this.context.inDemo() }, connected: this.context.daemon.state.kind === "ready", left, origin: source && this.context.titleOf(source.sessionId) });
      if (view.items.length === 0) {
        this.post({ type: "recent", sessions: this.context.recent(this.followed.id) });
        void this.untrusted.show();
      }
    }
    this.changed.fire();
  }

  private enqueue(events: Event[]) {
    this.batch.push(...events);
    this.deadlines.left(this.followed.view?.decisions ?? []);
    this.timer ??= setTimeout(() => this.flush(), batchMs);
  }

  private flush() {
    this.timer = undefined;
    this.post({ type: "events", events: this.batch.splice(0) });
    if (this.followed.view) {
      this.panel.setTitle(titleOf(this.followed.view.session));
    }
    this.changed.fire();
  }

  private async receive(message: FromWebview) {
    if (!ofPage.has(message.type)) {
      this.used.fire();
    }
    try {
      await this.handle(message);
    } catch (error) {
      this.context.log.error(`${message.type}: ${messageOf(error)}`);
      this.post({ type: "failed", message: messageOf(error) });
    }
  }

  private async handle(message: FromWebview): Promise<unknown> {
    if (message.type === "noticed") {
      return this.notices.end(message.id, message.button);
    }
    if (message.type !== "ready") {
      await this.requests.handle(message);
      return message.type === "run" && message.command.startsWith("choose") ? this.give({ type: "focus" }) : undefined; // a menu leaves the focus to the editor
    }
    this.ready = true;
    this.reset();
    this.notices.showAgain();
    this.undelivered.splice(0).forEach((late) => this.post(late));
  }

  private closeBecause(reason: string) {
    void vscode.window.showInformationMessage(...shownWhole(`lashd: ${reason}`));
    this.close();
  }

  private dispose() {
    this.open = false;
    clearTimeout(this.timer);
    this.notices.close();
    this.followed.close();
    this.closing.forEach((closing) => void closing.dispose());
    this.closed.fire();
  }
}

function options(): Options {
  const config = vscode.workspace.getConfiguration("lashd.chat");
  return { sendOnEnter: config.get("sendOnEnter", true), showReasoning: config.get("showReasoning", false) };
}
