import * as vscode from "vscode";
import { Emitter } from "vscode-jsonrpc/node";
import { messageOf, type Daemon } from "../daemon/daemon";
import type { Log } from "../daemon/link";
import { age } from "../model/sessions";
import { sizeText, pointTitle } from "../model/snapshots";
import type { Event, FilePoint, SessionID, SnapshotInfo } from "../protocol";

/** SnapshotNode is a tree entry: a group, a snapshot or a file point. */
export type SnapshotNode = { group: "Snapshots" | "File Changes" } | { snapshot: SnapshotInfo } | { point: FilePoint };

const refreshingEvents = new Set<Event["type"]>(["snapshot/created", "snapshot/deleted", "file/point"]);

/** Snapshots holds the snapshots and file points of one session. */
export class Snapshots {
  private readonly changes = new Emitter<void>();
  readonly onChange = this.changes.event;
  /** newest first */
  snapshots: SnapshotInfo[] = [];
  points: FilePoint[] = [];
  sessionId?: SessionID;
  private latestLoad = 0;
  private newestLoad?: Promise<void>;

  constructor(private readonly daemon: Daemon, private readonly log: Log) {
    daemon.onState((state) => void (state.kind === "ready" && this.load()));
    daemon.onEvent((event) => void (refreshingEvents.has(event.type) && event.sessionId === this.sessionId && this.load()));
  }

  setSession(sessionId: SessionID | undefined): void {
    if (sessionId !== this.sessionId) {
      this.sessionId = sessionId;
      void this.load();
    }
  }

  /** load reads the snapshots and file points. Only the newest of several concurrent loads takes effect, and all wait for it. */
  load(): Promise<void> {
    return (this.newestLoad = this.read(++this.latestLoad));
  }

  private async read(thisLoad: number): Promise<void> {
    const { sessionId, daemon } = this;
    try {
      const [snapshots, points] = sessionId === undefined ? [[], []] : await Promise.all([
        daemon.call("snapshot/list", { sessionId }).then(({ data }) => data),
        daemon.call("session/points", { sessionId }).then(({ data }) => data),
      ]);
      if (thisLoad === this.latestLoad) {
        this.snapshots = snapshots.toSorted((a, b) => b.atMs - a.atMs);
        this.points = points.filter(({ files, directories = 0, unrestorable }) => files + directories > 0 || unrestorable).toReversed();
        this.changes.fire();
      } else {
        await this.newestLoad;
      }
    } catch (error) {
      this.log.warn(`snapshots: ${messageOf(error)}`);
    }
  }
}

/** SnapshotTree shows the snapshots and file points of the current session. */
export class SnapshotTree implements vscode.TreeDataProvider<SnapshotNode> {
  private readonly changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;

  constructor(private readonly model: Snapshots) {
    model.onChange(() => this.changed.fire(undefined));
  }

  getChildren(node?: SnapshotNode): SnapshotNode[] {
    const { snapshots, points } = this.model;
    if (!node) {
      return [...(snapshots.length > 0 ? [{ group: "Snapshots" as const }] : []), ...(points.length > 0 ? [{ group: "File Changes" as const }] : [])];
    }
    if (!("group" in node)) {
      return [];
    }
    return node.group === "Snapshots" ? snapshots.map((snapshot) => ({ snapshot })) : points.map((point) => ({ point }));
  }

  /** getParent returns the parent of a snapshot, which VS Code needs to reveal it. */
  getParent(node: SnapshotNode): SnapshotNode | undefined {
    return "snapshot" in node ? { group: "Snapshots" } : "point" in node ? { group: "File Changes" } : undefined;
  }

  getTreeItem(node: SnapshotNode): vscode.TreeItem {
    if ("group" in node) {
      const item = new vscode.TreeItem(node.group, vscode.TreeItemCollapsibleState.Expanded);
      item.id = node.group;
      item.contextValue = "group";
      return item;
    }
    return "snapshot" in node ? snapshotItem(node) : pointItem(node);
  }
}

function snapshotItem(node: { snapshot: SnapshotInfo }): vscode.TreeItem {
  const { snapshot } = node;
  const item = new vscode.TreeItem(snapshot.name);
  item.id = `snapshot ${snapshot.name}`;
  item.description = `${age(snapshot.atMs, Date.now())} \u00b7 ${sizeText(snapshot)}`;
  item.tooltip = `${new Date(snapshot.atMs).toLocaleString()}\nClick to compare it with the current session.`;
  item.accessibilityInformation = { label: `${snapshot.name} ${item.description}` }; // otherwise screen readers read the tooltip
  item.iconPath = new vscode.ThemeIcon("save-all");
  item.contextValue = "snapshot";
  item.command = { command: "lashd.previewSnapshot", title: "Compare", arguments: [node] };
  return item;
}

function pointItem(node: { point: FilePoint }): vscode.TreeItem {
  const { point } = node;
  const { state, undone, unrestorable } = point;
  const item = new vscode.TreeItem(pointTitle(point));
  item.id = point.pointId;
  item.description = [age(point.atMs, Date.now()), state === "open" && "in progress", undone && "undone", unrestorable && "cannot be undone"].filter(Boolean).join(" \u00b7 ");
  item.tooltip = unrestorable ?? new Date(point.atMs).toLocaleString();
  item.accessibilityInformation = { label: `${pointTitle(point)} ${item.description}` };
  item.iconPath = new vscode.ThemeIcon(point.kind === "turn" ? "diff" : "discard");
  item.contextValue = `point ${state} ${unrestorable ? "" : "restorable"}`;
  item.command = { command: "lashd.showPoint", title: "Show Changes", arguments: [node] };
  return item;
}
