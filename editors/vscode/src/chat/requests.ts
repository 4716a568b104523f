import * as vscode from "vscode";
import { toInput } from "../model/input";
import { nodeOf } from "../model/session";
import { titleFrom } from "../model/sessions";
import type { Start } from "../model/slashCommands";
import { undoQuestion } from "../model/turns";
import type { CommandCall } from "../protocol";
import type { FollowedSession } from "../sessions";
import { answerDecision, runAgain } from "./answers";
import { showChange, showChanges } from "./changes";
import { handleContents } from "./contents";
import { handleInput, runCommand, startOf } from "./input";
import { openLink } from "./links";
import { Resources } from "./resources";
import type { Attached, FromWebview, ToWebview, WhenBusy } from "./messages";
import type { Context } from "./panel";
import { rewind, rewindMessage } from "./rewind";

/** Request is a message of the page of a chat that asks for something. */
export type Request = Exclude<FromWebview, { type: "ready" | "noticed" }>;

type Of<T extends Request["type"]> = Request & { type: T };

/** Requests handles the requests of the page of one session. */
export class Requests {
  private readonly resources: Resources;

  constructor(private readonly context: Context, private readonly followed: FollowedSession, private readonly post: (message: ToWebview) => void) {
    this.resources = new Resources(context.daemon, followed.id, context.log);
  }

  /** handle does what a request asks for. Its errors are for the user. */
  async handle(message: Request): Promise<unknown> {
    const { daemon } = this.context;
    const { id: sessionId, view } = this.followed;
    switch (message.type) {
      case "send":
        return this.send(message).catch((error: unknown) => {
          this.post({ type: "sent", ok: false });
          throw error;
        });
      case "stop":
        return this.stop();
      case "answer":
        return this.answer(message);
      case "preview":
        return this.preview(message);
      case "again":
        return runAgain(daemon, sessionId, view, message.itemId, message.withHosts);
      case "withdraw":
        return daemon.change("queue/cancel", { sessionId, inputId: message.inputId });
      case "older":
        return this.older();
      case "attach":
      case "dropped":
      case "store":
      case "picture":
      case "context":
        return handleContents(message, daemon, sessionId, this.post);
      case "suggest":
      case "resources":
      case "mention":
      case "command":
      case "history":
        return handleInput(message, { daemon, say: this.context.say, sessionId, cwd: this.cwd, resources: this.resources, post: this.post });
      case "highlight":
        return this.post({ type: "highlighted", id: message.id, lines: this.context.highlighter.tokens(message.language, message.code) });
      case "show":
        return this.context.open(message.sessionId);
      case "compact":
        return this.compact(message.instructions);
      case "review":
        return this.context.review(message.plugin, this.cwd);
      case "setUp":
        return vscode.commands.executeCommand("lashd.setUpProvider", view?.session.config.model.provider);
      case "diff":
        return showChange(this.context.texts, message.change, this.cwd);
      case "open":
        return openLink(message.href, this.cwd);
      case "task":
        return vscode.commands.executeCommand("lashd.taskOutput", view?.tasks.find(({ taskId }) => taskId === message.taskId));
      case "fork":
        return this.fork(message.itemId);
      case "rewind":
      case "rewindMessage":
        return this.rewind(message);
      case "run":
        return vscode.commands.executeCommand(`lashd.${message.command}`, message.turnId);
      case "changes":
        return showChanges(this.context, { sessionId, turnId: message.turnId }, this.cwd);
    }
  }

  /** stop stops the running turn, if any. */
  private async stop() {
    const turnId = this.followed.view?.turnId;
    if (turnId !== undefined) {
      await this.context.daemon.change("turn/interrupt", { turnId });
    }
  }

  private get cwd(): string {
    return this.followed.view?.session.cwd ?? "";
  }

  private async send({ text, attached, whenBusy, asText }: Of<"send">) {
    const { daemon } = this.context;
    const sessionId = this.followed.id;
    const escaped = text.startsWith("//");
    const start: Start = asText || escaped ? { kind: "text" } : await startOf(daemon, sessionId, text);
    if (start.kind === "unknown") {
      this.post({ type: "sent", ok: false });
      return this.post({ type: "unknown", name: start.name, near: start.near });
    }
    if (start.kind === "own") {
      this.post({ type: "sent", ok: true }); // first, because the command may write into the input
      return runCommand(daemon, this.context.say, sessionId, start.call.name, start.call.arguments);
    }
    this.context.used();
    if (start.kind === "operation") {
      await runCommand(daemon, this.context.say, sessionId, start.call.name, start.call.arguments);
      return this.post({ type: "sent", ok: true });
    }
    const sent = escaped ? text.slice(1) : text;
    await this.start(sent, attached, whenBusy, start.kind === "sent" ? start.command : undefined);
    this.post({ type: "sent", ok: true });
    await this.setTitle(sent);
  }

  /** start starts a turn with an input, or adds it to the running one. */
  private async start(text: string, attached: Attached[], whenBusy: WhenBusy, command: CommandCall | undefined) {
    const resources = (await this.resources.mentioned(text)).map(({ server, uri }) => ({ server, uri }));
    const named = resources.length > 0 ? { resources, whenBusy: "queue" as const } : {}; // a running turn reads no resources
    await this.context.daemon.change("turn/start", { sessionId: this.followed.id, input: toInput(text, attached), whenBusy, ...(command && { command }), ...named });
  }

  /** setTitle sets the title of a session that has none to the beginning of an input. */
  private async setTitle(text: string) {
    const title = titleFrom(text);
    if (title !== "" && !this.followed.view?.session.title) {
      await this.context.daemon.change("session/setTitle", { sessionId: this.followed.id, title });
    }
  }

  private async answer({ type: _, decisionId, ...answer }: Of<"answer">) {
    const message = await answerDecision(this.context.daemon, this.followed.view, decisionId, answer);
    if (message !== undefined) {
      this.post({ type: "failed", message });
    }
  }

  private async preview({ decisionId, file }: Of<"preview">) {
    const decision = this.followed.view?.decisions.find((one) => one.decisionId === decisionId);
    await (decision && this.context.showProposed(decision, file, this.cwd));
  }

  private async older() {
    const older = await this.followed.older();
    if (older) {
      this.post({ type: "page", page: older });
    }
  }

  private async compact(instructions: string) {
    let ok = false;
    try {
      await this.context.daemon.change("session/compact", { sessionId: this.followed.id, ...(instructions !== "" && { instructions }) });
      ok = true;
    } finally {
      this.post({ type: "compacted", ok });
    }
  }

  private async fork(itemId: string) {
    const r = await this.context.daemon.change("session/fork", { sessionId: this.followed.id, atNode: nodeOf(itemId) });
    await this.context.daemon.call("session/detach", { sessionId: r.sessionId });
    this.context.open(r.sessionId, this.followed.id);
  }

  /** rewind undoes a turn or a message, and puts its text back into the input. */
  private async rewind(message: Of<"rewind" | "rewindMessage">) {
    const { id, view } = this.followed;
    const back = () => this.post({ type: "undraft", text: message.text });
    const done = message.type === "rewindMessage" ? await rewindMessage(this.context, id, nodeOf(message.itemId), back) : await rewind(this.context, id, message.turnId, { cwd: this.cwd, question: undoQuestion(view?.items ?? [], message.turnId), reverted: back });
    if (done && done !== "only") {
      this.post({ type: "draft", text: message.text });
    }
  }
}
