import * as vscode from "vscode";
import { messageOf, type Daemon } from "./daemon/daemon";
import { Calls } from "./model/callsOnce";
import { looks } from "./model/modes";
import type { ClientTool, Event, Session, SessionID, ToolOutput } from "./protocol";
import { handlers, type From } from "./editorHandlers";
import type { Texts } from "./views/textDocuments";

/**
 * EditorTools lets the agent of the session in front use the editor it is shown in: tools that this window offers, and runs.
 * A call that comes again, because the connection was lost, is not run again.
 */
export class EditorTools {
  private readonly offered = new Map<SessionID, string>(); // with where the session works
  private readonly calls = new Calls<ToolOutput>();
  private editor = vscode.window.activeTextEditor;
  private readonly closing: vscode.Disposable;

  constructor(private readonly daemon: Daemon, private readonly texts: Texts, private readonly log: vscode.LogOutputChannel) {
    this.closing = vscode.Disposable.from(
      vscode.window.onDidChangeActiveTextEditor((editor) => void (this.editor = editor ?? this.editor)),
      daemon.onEvent((event) => void (event.type === "tool/requested" && event.clientId === daemon.clientId && this.run(event))),
      daemon.onEvent((event) => void (event.type === "item/completed" && event.item?.callId !== undefined && this.calls.over(keyOf(event, event.item.callId)))),
      daemon.onState((state) => void (state.kind === "ready" && this.offered.forEach((_, id) => void this.set(id)))),
    );
  }

  /** offer lets the session of the chat in front have these tools. They go with the window, not with each look at another chat: that would change sessions in which nothing has happened. */
  async offer(session: Session | undefined): Promise<void> {
    if (session && !this.offered.has(session.sessionId)) {
      this.offered.set(session.sessionId, session.cwd);
      await this.set(session.sessionId);
      await this.allowLooking(session);
    }
  }

  dispose(): void {
    this.closing.dispose();
  }

  private async set(sessionId: SessionID) {
    try {
      await this.daemon.change("session/setOverlay", { sessionId, tools: tools(), whileConnected: true });
    } catch (error) {
      this.log.info(`cannot offer editor tools to ${sessionId}: ${messageOf(error)}`);
    }
  }

  private async allowLooking({ sessionId, config }: Session) {
    const approval = looks(config);
    if (approval === undefined || tools().length === 0) {
      return;
    }
    try {
      await this.daemon.change("session/configure", { sessionId, approval });
    } catch (error) {
      this.log.info(`cannot allow read-only editor tools in ${sessionId}: ${messageOf(error)}`);
    }
  }

  private async run(event: Event) {
    const { toolCall, sessionId = "" } = event;
    if (!toolCall) {
      return;
    }
    const { callId, name, args } = toolCall;
    try {
      const output = await this.calls.run(keyOf(event, callId), async (signal) => {
        await this.daemon.change("tool/respond", { sessionId, callId, ack: true });
        return perform(name, args, { cwd: this.offered.get(sessionId) ?? "", editor: this.editor, texts: this.texts, signal });
      });
      await this.daemon.change("tool/respond", { sessionId, callId, output });
    } catch (error) {
      this.log.warn(`${name}: ${messageOf(error)}`);
    }
  }
}

/** Models give ids to calls that they have given to others before, in another turn. */
function keyOf({ sessionId, turnId }: Event, callId: string): string {
  return `${sessionId} ${turnId} ${callId}`;
}

/** What the settings let the agent use. */
function tools(): ClientTool[] {
  const on = vscode.workspace.getConfiguration("lashd").get("editorTools", true);
  return on ? Object.entries(handlers).map(([name, { tool }]) => ({ name, ...tool })) : [];
}

async function perform(name: string, args: unknown, from: From): Promise<ToolOutput> {
  const handler = handlers[name];
  try {
    if (!handler) {
      throw new Error(`this window has no tool ${name}`);
    }
    return { status: "success", text: await handler.run((args ?? {}) as never, from) };
  } catch (error) {
    return { status: "failure", failure: { class: "execution", code: "editor", message: messageOf(error), source: "tool" } };
  }
}
