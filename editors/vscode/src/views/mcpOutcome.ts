import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import { isBroken, isSettled, outcomeText } from "../model/mcpServers";
import type { PluginInfo, PluginServer } from "../protocol";
import type { Say } from "../toasts";

/** The longest time to wait for the start of servers. A server that takes longer is reported as not started yet. */
const startMs = 60_000;

/** The time after which the servers are read again if the daemon reports no change. */
const readAgainMs = 1000;

/** Servers are the names of MCP servers of a plugin, as sessions in a directory see them. */
export interface Servers {
  cwd?: string;
  plugin: string;
  names: string[];
}

/** sayOutcome waits until servers have started or failed to, and says which. If one needs the user, a button shows the list of servers. */
export async function sayOutcome(daemon: Daemon, say: Say, of: Servers): Promise<void> {
  const servers = await settled(daemon, of);
  const missing = of.names.filter((name) => !servers.some((server) => server.name === name));
  const text = [...servers.map(outcomeText), ...missing.map((name) => `${name} is added, but has not started yet.`)].join(" ");
  const show = "Show MCP Servers";
  const needsUser = missing.length > 0 || servers.some((server) => isBroken(server) || server.login === "needed");
  if (text !== "" && (await say(undefined, text, ...(needsUser ? [show] : []))) === show) {
    await vscode.commands.executeCommand("lashd.mcpServers");
  }
}

/** settled returns the servers once the start of each has ended, or after startMs. */
async function settled(daemon: Daemon, { cwd, plugin, names }: Servers): Promise<PluginServer[]> {
  const end = Date.now() + startMs;
  for (;;) {
    const { data } = await daemon.call("plugin/list", { ...(cwd !== undefined && { cwd }) });
    const servers = serversOf(data, plugin).filter(({ name }) => names.includes(name));
    if ((servers.length === names.length && servers.every(isSettled)) || Date.now() > end) {
      return servers;
    }
    await changed(daemon);
  }
}

function serversOf(plugins: PluginInfo[], plugin: string): PluginServer[] {
  return plugins.find(({ name }) => name === plugin)?.servers ?? [];
}

/** changed waits until a plugin changes, or for a short time. */
function changed(daemon: Daemon): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => done(), readAgainMs);
    const listener = daemon.onServerEvent((news) => news.type === "plugin/changed" && done());
    const done = () => {
      clearTimeout(timer);
      listener.dispose();
      resolve();
    };
  });
}
