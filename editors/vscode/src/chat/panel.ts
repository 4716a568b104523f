import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import { messageOf } from "../daemon/daemon";
import { words } from "../decisionText";
import { titleOf } from "../model/sessions";
import type { Event, SessionID } from "../protocol";
import type { Followed } from "../sessions";
import type { Texts } from "../views/textDocuments";
import { showChange, showChanges } from "./changes";
import { pick, toInput } from "./attachments";
import type { Attached, FromWebview, Options, ToWebview } from "./messages";
import { page } from "./page";
import { rewind } from "./rewind";

export const viewType = "lashd.chat";

/** How long events are gathered before they are sent to a webview. */
const gatherMs = 30;

/** Context is what a chat needs of the extension. */
export interface Context {
  daemon: Daemon;
  extensionUri: vscode.Uri;
  log: vscode.LogOutputChannel;
  texts: Texts;
  /** opens the chat of another session */
  open(id: SessionID): void;
}

/** ChatPanel shows one session in the editor area. What it shows is the daemon's; all that it keeps is what is being typed. */
export class ChatPanel {
  private readonly closing: vscode.Disposable[] = [];
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onChange = this.changed.event;
  private readonly closed = new vscode.EventEmitter<void>();
  readonly onClose = this.closed.event;
  private gathered: Event[] = [];
  private timer?: NodeJS.Timeout;
  private shown = false;
  private waiting: ToWebview[] = []; // for the page that is not there yet
  private there = true;

  constructor(private readonly panel: vscode.WebviewPanel, readonly followed: Followed, private readonly context: Context) {
    panel.webview.options = { enableScripts: true, localResourceRoots: [vscode.Uri.joinPath(context.extensionUri, "dist")] };
    const icon = (theme: string) => vscode.Uri.joinPath(context.extensionUri, "media", `lashd-${theme}.svg`);
    panel.iconPath = { light: icon("light"), dark: icon("dark") };
    panel.onDidDispose(() => this.dispose());
    panel.onDidChangeViewState(() => this.turned());
    this.closing.push(
      panel.webview.onDidReceiveMessage((message: FromWebview) => void this.hear(message)),
      followed.onChange((change) => ("events" in change ? this.gather(change.events) : this.reset())),
      followed.onGone((reason) => this.leave(reason)),
      context.daemon.onState((state) => this.tell({ type: "connected", connected: state.kind === "ready" })),
      vscode.workspace.onDidChangeConfiguration((e) => e.affectsConfiguration("lashd.chat") && this.reset()),
    );
    panel.webview.html = page(panel.webview, context.extensionUri, followed.id);
  }

  get active(): boolean {
    return this.there && this.panel.active;
  }

  get visible(): boolean {
    return this.there && this.panel.visible;
  }

  reveal(): void {
    this.panel.reveal();
  }

  close(): void {
    this.panel.dispose();
  }

  /** attach puts a piece of a file beside what is being typed. */
  attach(attached: Attached): void {
    this.reveal();
    this.tell({ type: "attached", attached });
  }

  /** The page of a chat that is hidden is gone. When it is back it says that it is ready. */
  private turned() {
    this.shown &&= this.panel.visible;
    this.changed.fire();
  }

  private tell(message: ToWebview) {
    if (this.shown) {
      void this.panel.webview.postMessage(message);
    } else if (message.type === "attached" || message.type === "draft") {
      this.waiting.push(message);
    }
  }

  private reset() {
    const { view } = this.followed;
    clearTimeout(this.timer);
    this.timer = undefined;
    this.gathered = [];
    if (view) {
      this.panel.title = titleOf(view.session);
      this.tell({ type: "reset", view, options: options(), connected: this.context.daemon.state.kind === "ready" });
    }
    this.changed.fire();
  }

  private gather(events: Event[]) {
    this.gathered.push(...events);
    this.timer ??= setTimeout(() => this.flush(), gatherMs);
  }

  private flush() {
    this.timer = undefined;
    this.tell({ type: "events", events: this.gathered.splice(0) });
    if (this.followed.view) {
      this.panel.title = titleOf(this.followed.view.session);
    }
    this.changed.fire();
  }

  private async hear(message: FromWebview) {
    try {
      await this.act(message);
    } catch (error) {
      this.context.log.error(`${message.type}: ${messageOf(error)}`);
      this.tell({ type: "failed", message: messageOf(error) });
    }
  }

  private async act(message: FromWebview): Promise<unknown> {
    const { daemon } = this.context;
    const sessionId = this.followed.id;
    switch (message.type) {
      case "ready":
        this.shown = true;
        this.reset();
        return this.waiting.splice(0).forEach((late) => this.tell(late));
      case "send":
        return this.send(message);
      case "stop":
        return this.stop();
      case "answer":
        return this.answer(message);
      case "withdraw":
        return daemon.change("queue/cancel", { sessionId, inputId: message.inputId });
      case "older":
        return this.older();
      case "attach":
        return (await pick()).forEach((attached) => this.tell({ type: "attached", attached }));
      case "diff":
        return showChange(this.context.texts, message.change, this.followed.view?.session.cwd ?? "");
      case "open":
        return this.openLink(message.href);
      case "fork":
        return this.fork(message.itemId);
      case "rewind":
        return this.rewind(message);
      case "run":
        return vscode.commands.executeCommand(`lashd.${message.command}`, message.turnId);
      case "changes":
        return showChanges(this.context, { sessionId, turnId: message.turnId }, this.followed.view?.session.cwd ?? "");
    }
  }

  private async send({ text, attached, when }: FromWebview & { type: "send" }) {
    const { daemon } = this.context;
    const input = toInput(text, attached);
    try {
      const params = { sessionId: this.followed.id, input, whenBusy: when };
      await daemon.change("turn/start", params);
      this.tell({ type: "sent", ok: true });
      await this.name(text);
    } catch (error) {
      this.tell({ type: "sent", ok: false });
      throw error;
    }
  }

  /** a session that has no title is named for the first thing that was asked of it */
  private async name(text: string) {
    const title = (text.split("\n")[0] ?? "").slice(0, 60).trim();
    if (title !== "" && !this.followed.view?.session.title) {
      await this.context.daemon.change("session/setTitle", { sessionId: this.followed.id, title });
    }
  }

  /** stop ends the running turn. */
  async stop(): Promise<void> {
    const turnId = this.followed.view?.turnId;
    if (turnId !== undefined) {
      await this.context.daemon.change("turn/interrupt", { turnId });
    }
  }

  private async answer({ decisionId, choice, value }: FromWebview & { type: "answer" }) {
    const decision = this.followed.view?.decisions.find((d) => d.decisionId === decisionId);
    const argsHash = decision?.argsHash && choice.startsWith("allow") ? { argsHash: decision.argsHash } : {};
    const r = await this.context.daemon.change("decision/respond", { decisionId, choice, ...argsHash, ...(value !== undefined && { value }) });
    if (!r.won) {
      this.tell({ type: "failed", message: `${r.answer.by} already answered: ${words[r.answer.choice]}` });
    }
  }

  private async older() {
    const older = await this.followed.older();
    if (older) {
      this.tell({ type: "page", page: older });
    }
  }

  private async openLink(href: string) {
    const uri = vscode.Uri.parse(href);
    if (["http", "https"].includes(uri.scheme)) {
      await vscode.env.openExternal(uri);
      return;
    }
    const cwd = vscode.Uri.file(this.followed.view?.session.cwd ?? "/");
    const [path = "", line] = href.split(/[:#]L?/);
    const at = Math.max(Number(line ?? 1) - 1 || 0, 0);
    await vscode.window.showTextDocument(vscode.Uri.joinPath(cwd, path), { selection: new vscode.Range(at, 0, at, 0) });
  }

  private async fork(itemId: string) {
    const r = await this.context.daemon.change("session/fork", { sessionId: this.followed.id, atNode: nodeOf(itemId) });
    await this.context.daemon.call("session/detach", { sessionId: r.sessionId });
    this.context.open(r.sessionId);
  }

  private async rewind({ turnId, text }: FromWebview & { type: "rewind" }) {
    const done = await rewind(this.context.daemon, this.followed.id, turnId);
    if (done && done !== "only") {
      this.tell({ type: "draft", text });
    }
  }

  private leave(reason: string) {
    void vscode.window.showInformationMessage(`lashd: ${reason}`);
    this.close();
  }

  private dispose() {
    this.there = false;
    clearTimeout(this.timer);
    this.followed.close();
    this.closing.forEach((closing) => void closing.dispose());
    this.closed.fire();
  }
}

/** The node that an item is a part of. */
function nodeOf(itemId: string): string {
  return itemId.slice(0, itemId.lastIndexOf(":"));
}

function options(): Options {
  const config = vscode.workspace.getConfiguration("lashd.chat");
  return { sendOnEnter: config.get("sendOnEnter", true), showReasoning: config.get("showReasoning", false) };
}
