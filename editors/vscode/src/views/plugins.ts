import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import { beforeText, reviewText } from "../model/pluginReview";
import { pluginTitle, statusText } from "../model/pluginStatus";
import type { PluginInfo, PluginProblem } from "../protocol";
import type { SessionTools } from "../sessionTools";
import type { Choices } from "./choices";
import type { ToolNode } from "./toolTree";
import { showTexts, type Texts } from "./textDocuments";
import { shownWhole, type Say } from "../toasts";
import { sayOutcome } from "./mcpOutcome";

/** Plugins implements the commands on plugins. */
export class Plugins {
  constructor(private readonly daemon: Daemon, private readonly tools: SessionTools, private readonly texts: Texts, private readonly choices: Choices, private readonly say: Say) {}

  async setEnabled(node: ToolNode, enabled: boolean): Promise<void> {
    await this.daemon.change("plugin/setEnabled", { ...this.pluginOf(node), enabled });
    await this.tools.load();
  }

  async reload(): Promise<void> {
    const { data, problems } = await this.daemon.change("plugin/reload", this.workspace());
    const changed = data.filter((change) => change.change !== "unchanged").map((change) => `${change.name} ${change.change}`);
    await this.tools.load();
    const text = [`${changed.join(", ") || "No plugin changed"}.`, ...(problems ?? []).map(ailingText)].join(" ");
    const show = "Show Plugins";
    const answer = problems?.length ? await vscode.window.showWarningMessage(...shownWhole(`lashd: ${text}`, show)) : await vscode.window.showInformationMessage(...shownWhole(`lashd: ${text}`));
    if (answer === show) {
      await vscode.commands.executeCommand("lashd.tools.focus");
    }
  }

  async logs(node: ToolNode): Promise<void> {
    const { data } = await this.daemon.call("plugin/logs", { ...this.pluginOf(node), limit: 1000 });
    const lines = data.map((line) => `${new Date(line.atMs).toISOString()} ${line.level} ${line.text}`);
    await showTexts(this.texts, `${"plugin" in node && node.plugin ? pluginTitle(node.plugin) : this.pluginOf(node).name}.log`, lines.join("\n") || "The log is empty.");
  }

  async untrust(node: ToolNode): Promise<void> {
    const { name, cwd = "" } = this.pluginOf(node);
    await this.daemon.change("plugin/untrust", { name, cwd });
    await this.tools.load();
  }

  /** trust lets the user review the plugin of an entry. */
  trust(node: ToolNode): Promise<void> {
    const { name, cwd = "" } = this.pluginOf(node);
    return this.review(name, cwd);
  }

  /** review shows exactly the files that trust in a plugin covers, beside those that are trusted now, and stores the trust if the user gives it. */
  async review(name: string, cwd: string): Promise<void> {
    const read = await this.daemon.call("plugin/read", { name, cwd, files: true });
    if (read.digest === undefined) {
      throw new Error(`there is nothing to review in ${name}: ${read.plugin.problems?.map(problemText).join(" ") || "its files cannot be read, or are trusted and loaded"}`);
    }
    const before = beforeText(read);
    const title = pluginTitle(read.plugin);
    if (await this.choices.ask({ kind: "lashd-trust", title: `Trust ${title}?`, name: `${title} (to review)`, text: reviewText(read, read.files ?? []), ...(before !== undefined && { before }) })) {
      await this.daemon.change("plugin/trust", { name, cwd, digest: read.digest });
      await this.tools.load();
      const names = read.contributes.filter(({ kind }) => kind === "server").map((one) => one.name);
      await sayOutcome(this.daemon, this.say, { cwd, plugin: name, names });
    }
  }

  private workspace() {
    const { cwd } = this.tools.place;
    return cwd === undefined ? {} : { cwd };
  }

  private pluginOf(node: ToolNode): { name: string; cwd?: string } {
    if (!("source" in node)) {
      throw new Error("select a plugin first");
    }
    return { name: node.source, ...this.workspace() };
  }
}

function problemText({ file, line, message }: PluginProblem): string {
  return `${file ? `${file}${line ? `:${line}` : ""}: ` : ""}${message}.`;
}

function ailingText({ name, status, problems = [] }: PluginInfo): string {
  return problems.length > 0 ? `${name}: ${problems.map(problemText).join(" ")}` : `${name} is ${statusText(status)}.`;
}
