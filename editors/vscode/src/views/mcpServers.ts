import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import { counted } from "../model/sessions";
import type { PluginServer } from "../protocol";
import { showTexts, type Texts } from "./textDocuments";

type Item = vscode.QuickPickItem & { plugin: string };

const icons: Record<string, string> = { ready: "pass", failed: "error", quarantined: "error", unreachable: "warning", starting: "sync" };

const log: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon("output"), tooltip: "Show the log" };
const restart: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon("refresh"), tooltip: "Restart the plugin of the server" };

/** showServers lists the MCP servers of the plugins in a directory, with their states. Buttons show the log and restart a server. */
export async function showServers(daemon: Daemon, texts: Texts, cwd: string | undefined): Promise<void> {
  const place = cwd === undefined ? {} : { cwd };
  const pick = Object.assign(vscode.window.createQuickPick<Item>(), { title: "MCP servers", placeholder: "Choose a server to see its log" });
  const load = async () => {
    const { data } = await daemon.call("plugin/list", place);
    pick.items = data.flatMap(({ name, servers = [] }) => servers.map((server): Item => ({ ...describe(server), plugin: name, buttons: [log, restart] })));
    pick.placeholder = pick.items.length === 0 ? "No plugin of this folder has an MCP server. Add one to .mcp.json, or as a plugin." : pick.placeholder;
  };
  const showLog = async ({ plugin: name }: Item) => {
    const { data } = await daemon.call("plugin/logs", { ...place, name, limit: 1000 });
    pick.hide();
    await showTexts(texts, `${name}.log`, data.map(({ atMs, level, text }) => `${new Date(atMs).toISOString()} ${level} ${text}`).join("\n") || "The log is empty.");
  };
  pick.onDidAccept(() => void (pick.activeItems[0] && showLog(pick.activeItems[0])));
  pick.onDidTriggerItemButton(async ({ item, button }) => {
    if (button === log) {
      return showLog(item);
    }
    await restartPlugin(daemon, place, item.plugin);
    return load();
  });
  pick.onDidHide(() => pick.dispose());
  pick.show();
  await load();
}

/** restartPlugin ends the programs of a plugin and starts them again. */
async function restartPlugin(daemon: Daemon, place: { cwd?: string }, name: string) {
  await daemon.change("plugin/setEnabled", { ...place, name, enabled: false });
  await daemon.change("plugin/setEnabled", { ...place, name, enabled: true });
}

/** describe shows a server: its name, its state and its error. */
export function describe({ name, transport, state, tools, product, error }: PluginServer): vscode.QuickPickItem {
  return { label: `$(${icons[state] ?? "circle-outline"}) ${name}`, description: [state, counted(tools, "tool"), transport, product].filter(Boolean).join(" \u00b7 "), ...(error && { detail: error }) };
}
