import * as vscode from "vscode";
import type { PluginInfo, PluginStatus, ToolRecord } from "../protocol";
import { isLayout, statusText } from "../model/pluginStatus";
import { sourcesOf, sourceTitle, type SessionTools } from "../sessionTools";
import { layoutTitle } from "./mcpFiles";

/** ToolNode is a plugin, or one of its tools. */
export type ToolNode = { source: string; plugin?: PluginInfo } | { tool: ToolRecord };

const icons: Record<PluginStatus, string> = {
  loaded: "extensions",
  degraded: "warning",
  failed: "error",
  untrusted: "shield",
  modified: "shield",
  disabled: "circle-slash",
};

const { Checked, Unchecked } = vscode.TreeItemCheckboxState;

/** ToolTree shows plugins and their tools. A checkbox makes a tool available to the model. */
export class ToolTree implements vscode.TreeDataProvider<ToolNode> {
  private readonly changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;

  constructor(private readonly tools: SessionTools) {
    tools.onChange(() => this.changed.fire(undefined));
  }

  /** toggle applies changed checkboxes. The checkbox of a plugin applies to all its tools. */
  async toggle(items: readonly [ToolNode, vscode.TreeItemCheckboxState][]): Promise<void> {
    const members = new Map<ToolRecord, boolean>();
    for (const [node, state] of items) {
      ("tool" in node ? [node.tool] : this.toolsOf(node.source)).forEach((tool) => members.set(tool, state === Checked));
    }
    await this.tools.setMembership([...members]);
  }

  getChildren(node?: ToolNode): ToolNode[] {
    if (!node) {
      return sourcesOf(this.tools).map((source) => ({ source, plugin: this.tools.plugins.find((plugin) => plugin.name === source) }));
    }
    return "tool" in node ? [] : this.toolsOf(node.source).map((tool) => ({ tool }));
  }

  getTreeItem(node: ToolNode): vscode.TreeItem {
    return "tool" in node ? this.toolItem(node.tool) : this.sourceItem(node.source, node.plugin);
  }

  private toolsOf(source: string): ToolRecord[] {
    return this.tools.records.filter((tool) => (tool.source || "none") === source);
  }

  private toolItem(tool: ToolRecord) {
    const item = new vscode.TreeItem(tool.name);
    item.id = `${this.tools.place.sessionId} ${tool.source} ${tool.name}`;
    item.description = `${tool.estimatedTokens} tokens${tool.orphan ? ", plugin missing" : ""}`;
    item.checkboxState = tool.member ? Checked : Unchecked;
    item.tooltip = toolTip(tool);
    item.contextValue = "tool";
    return item;
  }

  private sourceItem(source: string, plugin: PluginInfo | undefined) {
    const tools = this.toolsOf(source);
    const state = vscode.TreeItemCollapsibleState;
    const item = new vscode.TreeItem(titleOf(source, plugin), tools.length > 0 ? state.Collapsed : state.None);
    const members = tools.filter((tool) => tool.member);
    const tokens = members.reduce((sum, tool) => sum + tool.estimatedTokens, 0);
    const status = plugin && plugin.status !== "loaded" ? [statusText(plugin.status)] : [];
    const some = tools.length > 0 ? [`${members.length} of ${tools.length}, ${tokens} tokens`] : [];
    item.id = source;
    item.description = [...status, ...some].join(" \u00b7 ");
    item.iconPath = new vscode.ThemeIcon(icons[plugin?.status ?? "loaded"]);
    item.tooltip = pluginTip(plugin, source);
    item.contextValue = plugin ? `plugin ${plugin.scope} ${plugin.status}` : "source";
    if (tools.length > 0) {
      item.checkboxState = members.length > 0 ? Checked : Unchecked;
    }
    return item;
  }
}

function titleOf(source: string, plugin: PluginInfo | undefined): string {
  return plugin?.dir !== undefined && isLayout(plugin) ? layoutTitle(plugin.dir) : sourceTitle(source, plugin);
}

function toolTip(tool: ToolRecord): vscode.MarkdownString {
  const text = new vscode.MarkdownString();
  text.appendText(`${tool.description}\n\n${tool.source ? `From ${tool.source}.` : "Its plugin is no longer loaded."} After a crash, lashd ${tool.contract.replay === "never" ? "does not repeat" : "repeats"} an interrupted call.`);
  text.appendCodeblock(JSON.stringify(tool.input ?? {}, undefined, 2), "json");
  return text;
}

function pluginTip(plugin: PluginInfo | undefined, source: string): vscode.MarkdownString {
  const text = new vscode.MarkdownString();
  const lines = [
    `${plugin?.name ?? source} ${plugin?.version ?? ""}`,
    plugin?.description,
    plugin && `${plugin.scope}, ${statusText(plugin.status)}${plugin.dir ? `, in ${plugin.dir}` : ""}`,
    ...(plugin?.problems ?? []).map((problem) => `${problem.file ?? ""}${problem.line ? `:${problem.line}` : ""} ${problem.message}`),
  ];
  text.appendText(lines.filter(Boolean).join("\n\n"));
  return text;
}
