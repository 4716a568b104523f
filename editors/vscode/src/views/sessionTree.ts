import * as vscode from "vscode";
import { questionText } from "../decisionText";
import { age, counted, groupOf, groups, groupTitle, outlineOf, parentOf, titleOf, type Group, type Outline } from "../model/sessions";
import { openFolders } from "../openFolders";
import type { Session, SessionID } from "../protocol";
import type { Sessions } from "../sessions";
import type { ReadState } from "./readState";

/** Node is a tree entry: a group, a session, or a way out while lashd cannot start. */
export type Node = { group: Group; title: string } | { session: Session } | Way;

/** Way is a command for a lashd that cannot start. */
interface Way {
  way: string;
  icon: string;
  command: string;
}

const ways: Way[] = [
  { way: "Open config.toml", icon: "edit", command: "lashd.openConfig" },
  { way: "Show log", icon: "output", command: "lashd.showLog" },
  { way: "Try again", icon: "debug-restart", command: "lashd.restart" },
];

const icons: Record<Group, vscode.ThemeIcon> = {
  requiresAction: new vscode.ThemeIcon("question", new vscode.ThemeColor("notificationsWarningIcon.foreground")),
  running: new vscode.ThemeIcon("sync~spin"),
  idle: new vscode.ThemeIcon("comment-discussion"),
  archived: new vscode.ThemeIcon("archive"),
};

/** SessionTree shows sessions in groups, and subagents below their sessions. */
export class SessionTree implements vscode.TreeDataProvider<Node> {
  private readonly changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;

  private outline: Outline;

  /** cannotStart reports whether lashd cannot start: the tree then has ways out in place of sessions. */
  constructor(private readonly sessions: Sessions, private readonly seen: ReadState, private readonly cannotStart: () => boolean) {
    this.outline = outlineOf(sessions.list, folders());
  }

  refresh(): void {
    this.outline = outlineOf(this.sessions.list, folders());
    this.changed.fire(undefined);
  }

  getChildren(node?: Node): Node[] {
    if (this.cannotStart()) {
      return node ? [] : ways;
    }
    if (!node) {
      const all = groups.map(([group, title]) => ({ group, title }));
      return all.filter(({ group }) => this.sessionsOf(group).length > 0);
    }
    if ("way" in node) {
      return [];
    }
    const below = "group" in node ? this.sessionsOf(node.group) : this.childrenOf(node.session.sessionId);
    return below.map((session) => ({ session }));
  }

  getTreeItem(node: Node): vscode.TreeItem {
    if ("way" in node) {
      return wayItem(node);
    }
    return "group" in node ? this.groupItem(node) : this.sessionItem(node.session);
  }

  /** nodeOf returns the entry of a session; undefined if the tree does not show it. */
  nodeOf(id: SessionID): Node | undefined {
    const session = this.sessions.list.get(id);
    return session && !this.cannotStart() && this.isListed(session) ? { session } : undefined;
  }

  getParent(node: Node): Node | undefined {
    if (!("session" in node)) {
      return undefined;
    }
    const parent = this.parentOf(node.session);
    const group = groupOf(node.session);
    return parent ? { session: parent } : { group, title: groupTitle(group) };
  }

  private parentOf(session: Session): Session | undefined {
    return this.sessions.list.get(parentOf(this.sessions.list, session) ?? "");
  }

  private isListed(session: Session): boolean {
    const parent = this.parentOf(session);
    const siblings = parent ? this.childrenOf(parent.sessionId) : this.sessionsOf(groupOf(session));
    return siblings.some(({ sessionId }) => sessionId === session.sessionId) && (!parent || this.isListed(parent));
  }

  private sessionsOf(group: Group): Session[] {
    return this.outline.groups[group];
  }

  private childrenOf(id: SessionID): Session[] {
    return this.outline.children.get(id) ?? [];
  }

  private groupItem({ group, title }: { group: Group; title: string }) {
    const state = vscode.TreeItemCollapsibleState;
    const item = new vscode.TreeItem(title, group === "archived" ? state.Collapsed : state.Expanded);
    item.id = group;
    item.contextValue = "group";
    item.description = String(this.sessionsOf(group).length);
    return item;
  }

  private sessionItem(session: Session) {
    const state = vscode.TreeItemCollapsibleState;
    const id = session.sessionId;
    const below = this.childrenOf(id).length > 0;
    const item = new vscode.TreeItem(titleOf(session), below ? state.Expanded : state.None);
    const unread = this.seen.unread(session) ? "\u25cf " : "";
    item.id = id;
    item.description = `${unread}${age(session.updatedAtMs, Date.now())}`;
    item.tooltip = this.tooltip(session);
    item.iconPath = icons[groupOf(session)];
    item.contextValue = contextOf(session);
    item.command = { command: "lashd.openSession", title: "Open", arguments: [{ session }] };
    return item;
  }

  private tooltip(session: Session): vscode.MarkdownString {
    const asked = this.sessions.decisions.filter((d) => d.sessionId === session.sessionId);
    const lines = [
      `**${escaped(titleOf(session))}**`,
      escaped(`${groupTitle(groupOf(session))}, ${counted(session.turnIndex, "turn")}, ${session.usage.input + session.usage.output} tokens`),
      escaped(session.config.model.id),
      escaped(session.cwd),
      ...asked.map((decision) => escaped(questionText(decision, session))),
    ];
    return new vscode.MarkdownString(lines.join("\n\n"));
  }
}

function wayItem({ way, icon, command }: Way): vscode.TreeItem {
  return Object.assign(new vscode.TreeItem(way), { id: way, iconPath: new vscode.ThemeIcon(icon), command: { command, title: way }, contextValue: "way" });
}

/** contextOf returns the context value that selects the menu entries of a session. */
function contextOf(session: Session): string {
  return `session ${session.state === "idle" ? "idle" : "busy"} ${session.archived ? "archived" : "current"}`;
}

const escaped = (text: string) => text.replace(/[\\`*_{}[\]()#+\-.!<>|]/g, "\\$&");

/** folders returns the folders whose sessions are shown; undefined means all. Sessions from before a folder was moved and linked have its old path. */
export function folders(): string[] | undefined {
  const all = vscode.workspace.getConfiguration("lashd").get("sessions.scope") === "all";
  return all || !vscode.workspace.workspaceFolders ? undefined : openFolders().flatMap(({ path, real }) => [real, path]);
}

/** sessionOf returns the session id of a tree entry, or undefined for a group. */
export function sessionOf(node: Node | undefined): SessionID | undefined {
  return node && "session" in node ? node.session.sessionId : undefined;
}
