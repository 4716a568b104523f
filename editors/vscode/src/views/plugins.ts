import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import type { PluginInfo, PluginReadResult } from "../protocol";
import { counted } from "../model/sessions";
import type { SessionTools } from "../sessionTools";
import type { ToolNode } from "./toolTree";
import { showTexts, type Texts } from "./textDocuments";
import { shownWhole } from "../toasts";

/** The largest file that a review shows, in bytes. The digest of the plugin covers larger files as well. */
const maxShownBytes = 256 * 1024;

/** Plugins implements the commands on plugins. */
export class Plugins {
  constructor(private readonly daemon: Daemon, private readonly tools: SessionTools, private readonly trusted: vscode.Memento, private readonly log: vscode.LogOutputChannel, private readonly texts: Texts) {}

  async setEnabled(node: ToolNode, enabled: boolean): Promise<void> {
    await this.daemon.change("plugin/setEnabled", { ...this.pluginOf(node), enabled });
    await this.tools.load();
  }

  async reload(): Promise<void> {
    const { data, problems } = await this.daemon.change("plugin/reload", this.workspace());
    const changed = data.filter((change) => change.change !== "unchanged").map((change) => `${change.name} ${change.change}`);
    const ill = problems?.length ? `; ${counted(problems.length, "problem")}` : "";
    void vscode.window.showInformationMessage(...shownWhole(`lashd: ${changed.join(", ") || "No plugin changed"}${ill}.`));
    await this.tools.load();
  }

  async logs(node: ToolNode): Promise<void> {
    const { data } = await this.daemon.call("plugin/logs", { ...this.pluginOf(node), limit: 1000 });
    const lines = data.map((line) => `${new Date(line.atMs).toISOString()} ${line.level} ${line.text}`);
    await showTexts(this.texts, `${this.pluginOf(node).name}.log`, lines.join("\n") || "The log is empty.");
  }

  async untrust(node: ToolNode): Promise<void> {
    const { name, cwd = "" } = this.pluginOf(node);
    await this.daemon.change("plugin/untrust", { name, cwd });
    await this.tools.load();
  }

  /** trust shows the files of a plugin beside those that were trusted before, and asks for trust. */
  async trust(node: ToolNode): Promise<void> {
    const { name, cwd = "" } = this.pluginOf(node);
    const key = `lashd.approved ${cwd} ${name}`;
    const { digest, text } = await this.readStable(name, cwd);
    await showTexts(this.texts, `${name} (to review)`, text, this.trusted.get<string>(key));
    const question = `Trust the plugin ${name} with exactly these files? Its programs run with your permissions.`;
    if (await vscode.window.showWarningMessage(question, { detail: `sha256 ${digest}` }, "Trust")) {
      await this.daemon.change("plugin/trust", { name, cwd, digest });
      await this.trusted.update(key, text);
      await this.tools.load();
    }
  }

  /** readStable reads a plugin and its files. If they change during the read, it reads them again, up to five times. */
  private async readStable(name: string, cwd: string): Promise<{ digest: string; text: string }> {
    for (let i = 0; i < 5; i++) {
      const before = await this.daemon.call("plugin/read", { name, cwd });
      const text = `${describePlugin(before)}\n${await fileContents(before.plugin)}`;
      const after = await this.daemon.call("plugin/read", { name, cwd });
      if (after.digest === undefined) {
        throw new Error(`there is nothing to review: the plugin ${name} is already trusted and loaded`);
      }
      if (before.digest === after.digest) {
        return { digest: after.digest, text };
      }
      this.log.info(`plugin ${name} changed during the review; reading it again`);
    }
    throw new Error(`the files of the plugin ${name} kept changing during the review; try again`);
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

function describePlugin({ plugin, contributes, reach }: PluginReadResult): string {
  const what = contributes.map(({ kind, name, detail }) => `  ${kind} ${name}${detail ? `: ${detail}` : ""}`);
  const commands = (reach.commands ?? []).map((argv) => `  ${JSON.stringify(argv)}`);
  const programs = (reach.executables ?? []).map((program) => `  ${program.name}: ${program.path} sha256 ${program.digest}`);
  const part = (title: string, lines: string[] | undefined) => (lines?.length ? [`${title}:`, ...lines] : []);
  return [
    plugin.name, // not plugin.version: that is the version of the loaded plugin
    ...part("Adds", what),
    ...part("Runs", commands),
    ...part("Programs", programs),
    ...part("Files in its commands", reach.files?.map((file) => `  ${file.path} ${file.digest ? `sha256 ${file.digest}` : "(does not exist yet)"}`)),
    ...part("Not covered by trust", reach.uncovered?.map((text) => `  ${text}`)),
    ...part("Addresses", reach.addresses?.map((a) => `  ${a}`)),
    ...part("Environment", reach.environment?.map((e) => `  ${e}`)),
    ...part("Capabilities", reach.capabilities?.map((c) => `  ${c}`)),
    ...part("Configuration", reach.configures ? ["  can change the configuration of sessions; it can make approval only stricter"] : undefined),
  ].join("\n");
}

async function fileContents({ dir }: PluginInfo): Promise<string> {
  if (!dir) {
    return "";
  }
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const parts = await Promise.all(paths.sort().map(async (path) => `\n==== ${relative(dir, path)}\n${textOf(await readFile(path))}`));
  return parts.join("\n");
}

function textOf(bytes: Buffer): string {
  return bytes.length > maxShownBytes || bytes.includes(0) ? `(${bytes.length} bytes, not shown)` : bytes.toString("utf8");
}
