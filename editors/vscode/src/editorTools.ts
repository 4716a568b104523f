import * as vscode from "vscode";
import { messageOf, type Daemon } from "./daemon/daemon";
import { RunOnce } from "./model/runOnce";
import { allowReadOnlyTools } from "./model/modes";
import type { ClientTool, Event, Session, SessionID, ToolOutput } from "./protocol";
import { handlers, type CallContext } from "./editorHandlers";
import type { Choices } from "./views/choices";

/**
 * EditorTools offers the editor tools of this window to sessions and runs their calls. The daemon may request a call again after a
 * reconnect; it still runs only once.
 */
export class EditorTools {
  private readonly sessions = new Map<SessionID, string>(); // session ids with their working directories
  private readonly calls = new RunOnce<ToolOutput>();
  private editor = vscode.window.activeTextEditor;
  private readonly closing: vscode.Disposable;

  constructor(private readonly daemon: Daemon, private readonly choices: Choices, private readonly log: vscode.LogOutputChannel) {
    this.closing = vscode.Disposable.from(
      vscode.window.onDidChangeActiveTextEditor((editor) => void (this.editor = editor ?? this.editor)),
      daemon.onEvent((event) => void (event.type === "tool/requested" && event.clientId === daemon.clientId && this.run(event))),
      daemon.onEvent((event) => void (event.type === "item/completed" && event.item?.callId !== undefined && this.calls.cancel(keyOf(event, event.item.callId)))),
      daemon.onState((state) => void (state.kind === "ready" && this.sessions.forEach((_, id) => void this.sendOverlay(id)))),
    );
  }

  /** offer offers the tools to a session, once. The session keeps them until the window disconnects: switching chats must not change sessions. */
  async offer(session: Session | undefined): Promise<void> {
    if (session && !this.sessions.has(session.sessionId)) {
      this.sessions.set(session.sessionId, session.cwd);
      await this.sendOverlay(session.sessionId);
      await this.allowReading(session);
    }
  }

  dispose(): void {
    this.closing.dispose();
  }

  private async sendOverlay(sessionId: SessionID) {
    try {
      await this.daemon.change("session/setOverlay", { sessionId, tools: tools(), whileConnected: true });
    } catch (error) {
      this.log.info(`cannot offer editor tools to ${sessionId}: ${messageOf(error)}`);
    }
  }

  private async allowReading({ sessionId, config }: Session) {
    const approval = allowReadOnlyTools(config);
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
        return runHandler(name, args, { cwd: this.sessions.get(sessionId) ?? "", editor: this.editor, choices: this.choices, signal });
      });
      await this.daemon.change("tool/respond", { sessionId, callId, output });
    } catch (error) {
      this.log.warn(`${name}: ${messageOf(error)}`);
    }
  }
}

/** keyOf returns a unique key for a call. Models may reuse the id of a call in another turn. */
function keyOf({ sessionId, turnId }: Event, callId: string): string {
  return `${sessionId} ${turnId} ${callId}`;
}

/** tools returns the tools that the settings allow. */
function tools(): ClientTool[] {
  const on = vscode.workspace.getConfiguration("lashd").get("editorTools", true);
  return on ? Object.entries(handlers).map(([name, { tool }]) => ({ name, ...tool })) : [];
}

async function runHandler(name: string, args: unknown, from: CallContext): Promise<ToolOutput> {
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
