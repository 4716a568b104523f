import * as vscode from "vscode";
import { Emitter } from "vscode-jsonrpc/node";
import { messageOf, type Daemon } from "../daemon/daemon";
import type { Log } from "../daemon/link";
import { taskName } from "../model/callWords";
import { age } from "../model/sessions";
import type { Task, TaskState } from "../protocol";

const icons: Record<TaskState, string> = {
  pending: "clock",
  running: "sync~spin",
  idle: "watch",
  cancelRequested: "debug-stop",
  completed: "pass",
  failed: "error",
  cancelled: "circle-slash",
  abandoned: "question",
};

const endedStates = new Set<TaskState>(["completed", "failed", "cancelled", "abandoned"]);

/** hasEnded reports whether a task has ended. */
export const hasEnded = (task: Task) => endedStates.has(task.state);

/** Tasks holds the tasks of one session, newest first. */
export class Tasks {
  private readonly changes = new Emitter<void>();
  readonly onChange = this.changes.event;
  list: Task[] = [];
  private sessionId?: string;
  private latestLoad = 0;

  constructor(private readonly daemon: Daemon, private readonly log: Log) {
    daemon.onState((state) => void (state.kind === "ready" && this.load()));
    daemon.onEvent((event) => void (event.task && event.sessionId === this.sessionId && this.load()));
  }

  setSession(sessionId: string | undefined): void {
    if (sessionId !== this.sessionId) {
      this.sessionId = sessionId;
      void this.load();
    }
  }

  async load(): Promise<void> {
    const thisLoad = ++this.latestLoad;
    const { sessionId } = this;
    try {
      const data = sessionId === undefined ? [] : (await this.daemon.call("task/list", { sessionId, limit: 1000 })).data;
      if (thisLoad === this.latestLoad) {
        this.list = data.filter((task) => !task.pruned).toReversed();
        this.changes.fire();
      }
    } catch (error) {
      this.log.warn(`tasks: ${messageOf(error)}`);
    }
  }
}

/** TaskTree shows the tasks and monitors of the current session, newest first. */
export class TaskTree implements vscode.TreeDataProvider<Task> {
  private readonly changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;

  constructor(private readonly tasks: Tasks) {
    tasks.onChange(() => this.changed.fire(undefined));
  }

  getChildren(task?: Task): Task[] {
    return task ? [] : this.tasks.list;
  }

  getTreeItem(task: Task): vscode.TreeItem {
    const { spec, outcome } = task;
    const label = taskName(task);
    const item = new vscode.TreeItem(label);
    item.id = task.taskId;
    item.description = [spec.kind, task.state, age(task.updatedAtMs, Date.now())].join(" \u00b7 ");
    item.iconPath = new vscode.ThemeIcon(icons[task.state]);
    item.tooltip = [spec.command?.script, outcome?.message, outcome?.exitCode === undefined ? undefined : `exit code ${outcome.exitCode}`].filter(Boolean).join("\n");
    item.accessibilityInformation = { label: `${label} ${item.description}` }; // otherwise screen readers read the tooltip
    item.contextValue = `task ${hasEnded(task) ? "over" : "live"} ${spec.command ? "output" : ""}`;
    item.command = { command: "lashd.taskOutput", title: "Show Output", arguments: [task] };
    return item;
  }
}
