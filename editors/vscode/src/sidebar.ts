import * as vscode from "vscode";
import type { Chats } from "./chat/chats";
import type { Commands } from "./commands";
import type { Daemon } from "./daemon/daemon";
import { realFolders } from "./openFolders";
import type { Task } from "./protocol";
import type { Sessions } from "./sessions";
import { SessionTools } from "./sessionTools";
import type { Choices } from "./views/choices";
import { Plugins } from "./views/plugins";
import { Problems } from "./views/problems";
import { SnapshotCommands } from "./views/snapshotCommands";
import { Snapshots, SnapshotTree } from "./views/snapshotTree";
import { showTask } from "./views/taskTerminal";
import { Tasks, TaskTree } from "./views/taskTree";
import type { Say } from "./toasts";
import type { Texts } from "./views/textDocuments";
import { ToolTree, type ToolNode } from "./views/toolTree";

/** The delay before new plugin files are read, so that all files of a new directory exist. */
const settleMs = 500;

/** Sidebar owns the views of the current session: plugins and tools, problems, tasks, and snapshots. */
export class Sidebar {
  private readonly tools: SessionTools;
  private readonly tasks: Tasks;
  private readonly plugins: Plugins;
  private readonly snapshots: Snapshots;
  private readonly restore: SnapshotCommands;
  private readonly closing: vscode.Disposable[];

  constructor(private readonly daemon: Daemon, private readonly sessions: Sessions, log: vscode.LogOutputChannel, texts: Texts, choices: Choices, say: Say) {
    this.tools = new SessionTools(daemon, log);
    this.tasks = new Tasks(daemon, log);
    this.plugins = new Plugins(daemon, this.tools, texts, choices, say);
    this.snapshots = new Snapshots(daemon, log);
    const problems = new Problems();
    const tools = new ToolTree(this.tools);
    const view = vscode.window.createTreeView("lashd.tools", { treeDataProvider: tools, manageCheckboxStateManually: true });
    const tasks = vscode.window.createTreeView("lashd.tasks", { treeDataProvider: new TaskTree(this.tasks) });
    const snapshots = vscode.window.createTreeView("lashd.snapshots", { treeDataProvider: new SnapshotTree(this.snapshots) });
    this.restore = new SnapshotCommands(daemon, sessions, this.snapshots, texts, say, (snapshot) => snapshots.reveal({ snapshot }, { select: true, focus: false }));
    view.onDidChangeCheckboxState((e) => void tools.toggle(e.items));
    this.tools.onChange(() => problems.show(this.tools.plugins));
    // The daemon watches the plugins of a workspace after it has found the first one. When a directory tree appears, VS Code reports only
    // its top directory.
    const watchers = ["**/.agents{,/**}", "**/.claude{,/**}", "**/.mcp.json"].map((glob) => vscode.workspace.createFileSystemWatcher(glob, false, true, true));
    watchers.forEach((watcher) => watcher.onDidCreate(() => setTimeout(() => void this.tools.load(), settleMs)));
    this.closing = [view, tasks, snapshots, problems, ...watchers];
  }

  /** setActiveChat shows the session of the active chat, or the plugins of the first folder if no chat is open. */
  setActiveChat(chats: Chats): void {
    const sessionId = chats.active?.followed.id;
    const session = sessionId === undefined ? undefined : this.sessions.list.get(sessionId);
    const cwd = session?.cwd ?? realFolders()[0];
    this.tools.setPlace({ cwd, sessionId });
    this.tasks.setSession(sessionId);
    this.snapshots.setSession(sessionId);
  }

  get commands(): Commands {
    const { plugins, daemon } = this;
    return {
      ...this.restore.commands,
      enablePlugin: (node: ToolNode) => plugins.setEnabled(node, true),
      disablePlugin: (node: ToolNode) => plugins.setEnabled(node, false),
      reloadPlugins: () => plugins.reload(),
      pluginLogs: (node: ToolNode) => plugins.logs(node),
      trustPlugin: (node: ToolNode) => plugins.trust(node),
      untrustPlugin: (node: ToolNode) => plugins.untrust(node),
      taskOutput: (task: Task) => showTask(daemon, task),
      cancelTask: ({ sessionId, taskId }: Task) => daemon.change("task/cancel", { sessionId, taskId }),
    };
  }

  /** review lets the user review and trust a plugin of a folder. */
  async review(plugin: string, cwd: string): Promise<void> {
    await this.tools.load();
    await this.plugins.review(plugin, cwd);
  }

  dispose(): void {
    this.closing.forEach((closing) => void closing.dispose());
  }
}
