import * as vscode from "vscode";
import { messageOf, type Daemon } from "../daemon/daemon";
import { taskName } from "../model/callWords";
import { printable } from "../model/printable";
import { TerminalFilter } from "../model/terminalFilter";
import type { Task } from "../protocol";

/** The interval between requests for new output. */
const pauseMs = 300;

/** showTask opens a terminal with the output of a task. Typed text goes to the task. */
export function showTask(daemon: Daemon, task: Task): void {
  const name = taskName(task);
  const terminal = vscode.window.createTerminal({ name, pty: new TaskTerminal(daemon, task), iconPath: new vscode.ThemeIcon("server-process") });
  terminal.show(true);
}

/** TaskTerminal is a terminal for a task. Closing it does not stop the task. */
class TaskTerminal implements vscode.Pseudoterminal {
  private readonly written = new vscode.EventEmitter<string>();
  readonly onDidWrite = this.written.event;
  private readonly filter = new TerminalFilter();
  private isOpen = false;

  constructor(private readonly daemon: Daemon, private readonly task: Task) {}

  open(): void {
    this.isOpen = true;
    void this.follow().catch((error) => this.written.fire(`\r\n[${printable(messageOf(error))}]\r\n`));
  }

  close(): void {
    this.isOpen = false;
  }

  handleInput(typed: string): void {
    const terminal = this.task.spec.command?.pty !== undefined;
    if (typed === "\x03" && !terminal) {
      this.signal("interrupt");
    } else {
      this.signal("stdin", { text: terminal ? typed : typed.replaceAll("\r", "\n") });
    }
  }

  private signal(name: string, payload?: unknown) {
    const { sessionId, taskId } = this.task;
    const params = { sessionId, taskId, name, ...(payload !== undefined && { payload }) };
    this.daemon.call("task/signal", params).catch((error) => this.written.fire(`\r\n[${printable(messageOf(error))}]\r\n`));
  }

  private async follow() {
    const { sessionId, taskId } = this.task;
    for (let offset = 0; this.isOpen; ) {
      const r = await this.daemon.call("task/output", { sessionId, taskId, offset });
      this.written.fire(this.filter.pass(r.text).replace(/\r?\n/g, "\r\n"));
      const more = r.nextOffset > offset;
      offset = r.nextOffset;
      if (r.ended && !more) {
        this.written.fire("\r\n[The task ended.]\r\n");
        return;
      }
      if (!more) {
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
  }
}
