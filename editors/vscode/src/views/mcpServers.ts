import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { messageOf, type Daemon } from "../daemon/daemon";
import { actionsOf, nameProblem, stateText, withServer, type ServerAction } from "../model/mcpServers";
import { counted } from "../model/sessions";
import type { PluginInfo, PluginServer } from "../protocol";
import { signIn } from "./mcpSignIn";
import { showTexts, type Texts } from "./textDocuments";

type Item = vscode.QuickPickItem & { plugin?: string; server?: string; file?: string };

interface ActionButton extends vscode.QuickInputButton {
  action: ServerAction;
}

const icons: Record<string, string> = { ready: "pass", failed: "error", quarantined: "error", unreachable: "warning", starting: "sync" };

const buttons: Record<ServerAction, ActionButton> = {
  log: { action: "log", iconPath: new vscode.ThemeIcon("output"), tooltip: "Show the log" },
  restart: { action: "restart", iconPath: new vscode.ThemeIcon("refresh"), tooltip: "Restart the plugin of the server" },
  signIn: { action: "signIn", iconPath: new vscode.ThemeIcon("sign-in"), tooltip: "Sign in" },
  signOut: { action: "signOut", iconPath: new vscode.ThemeIcon("sign-out"), tooltip: "Sign out" },
  configure: { action: "configure", iconPath: new vscode.ThemeIcon("edit"), tooltip: "Change or remove it in its file" },
};

/** showServers lists the MCP servers of the plugins in a directory, with their states. Buttons act on a server; the last entry adds one. */
export async function showServers(daemon: Daemon, texts: Texts, cwd: string | undefined): Promise<void> {
  const place = cwd === undefined ? {} : { cwd };
  const pick = Object.assign(vscode.window.createQuickPick<Item>(), { title: "MCP servers", placeholder: "Choose a server to see its log", matchOnDescription: true });
  const load = async () => {
    const { data } = await daemon.call("plugin/list", place);
    pick.items = [...data.flatMap(itemsOf), ...(cwd === undefined ? [] : [{ label: "$(add) Add a server to this folder\u2026" }])];
    if (!pick.items.some(({ server }) => server)) {
      pick.placeholder = "No plugin of this folder has an MCP server.";
    }
  };
  const act = async ({ plugin = "", server = "", file = "" }: Item, action: ServerAction) => {
    if (action !== "restart" && action !== "signOut") {
      pick.hide();
    }
    switch (action) {
      case "log":
        return showLog(daemon, texts, place, plugin);
      case "configure":
        return void (await vscode.window.showTextDocument(vscode.Uri.file(file)));
      case "signIn":
        return void ((await signIn(daemon, { ...place, plugin, server })) && vscode.window.showInformationMessage(`lashd: You are signed in to ${server}.`));
      case "signOut":
        await daemon.call("mcp/logout", { ...place, plugin, server });
        return load();
      case "restart":
        await restartPlugin(daemon, place, plugin);
        return load();
    }
  };
  const run = (work: Promise<void>) => void work.catch((error) => vscode.window.showErrorMessage(`lashd: ${messageOf(error)}`));
  pick.onDidAccept(() => {
    const [item] = pick.activeItems;
    if (item?.server) {
      return run(act(item, "log"));
    }
    pick.hide();
    return item && cwd !== undefined ? run(addServer(cwd)) : undefined;
  });
  pick.onDidTriggerItemButton(({ item, button }) => run(act(item, (button as ActionButton).action)));
  pick.onDidHide(() => pick.dispose());
  pick.show();
  await load();
}

function itemsOf({ name, dir, servers = [] }: PluginInfo): Item[] {
  const file = dir === undefined ? undefined : [join(dir, ".mcp.json"), join(dir, "plugin.json")].find((path) => existsSync(path));
  return servers.map((server) => ({
    ...describe(server), plugin: name, server: server.name, file, buttons: actionsOf(server, file !== undefined).map((action) => buttons[action]),
  }));
}

async function showLog(daemon: Daemon, texts: Texts, place: { cwd?: string }, name: string) {
  const { data } = await daemon.call("plugin/logs", { ...place, name, limit: 1000 });
  await showTexts(texts, `${name}.log`, data.map(({ atMs, level, text }) => `${new Date(atMs).toISOString()} ${level} ${text}`).join("\n") || "The log is empty.");
}

/** restartPlugin ends the programs of a plugin and starts them again. */
async function restartPlugin(daemon: Daemon, place: { cwd?: string }, name: string) {
  await daemon.change("plugin/setEnabled", { ...place, name, enabled: false });
  await daemon.change("plugin/setEnabled", { ...place, name, enabled: true });
}

/** addServer asks for a server, adds it to the .mcp.json of a folder, and shows the file. lashd loads it after the user has approved it. */
async function addServer(cwd: string) {
  const name = await vscode.window.showInputBox({ title: "Add an MCP server: name", prompt: "Its tools are mcp__NAME__TOOL.", placeHolder: "docs", validateInput: nameProblem, ignoreFocusOut: true });
  const line = name && (await vscode.window.showInputBox({
    title: `Add an MCP server: ${name}`, prompt: "A program with its arguments, or the URL of an HTTP server. Put secrets into variables: ${NAME}.", placeHolder: "npx -y docs-server", ignoreFocusOut: true,
  }));
  if (!name || !line?.trim()) {
    return;
  }
  const file = join(cwd, ".mcp.json");
  writeFileSync(file, withServer(existsSync(file) ? readFileSync(file, "utf8") : "", name, line));
  await vscode.window.showTextDocument(vscode.Uri.file(file));
  const show = "Show Plugins";
  if ((await vscode.window.showInformationMessage(`lashd: ${name} is in .mcp.json. lashd starts it after you have approved the file in Plugins and Tools.`, show)) === show) {
    await vscode.commands.executeCommand("lashd.tools.focus");
  }
}

/** describe shows a server: its name, its state and its error. */
export function describe(server: PluginServer): vscode.QuickPickItem {
  const { name, transport, state, tools, product, error, login } = server;
  const icon = login === "needed" ? "sign-in" : (icons[state] ?? "circle-outline");
  return { label: `$(${icon}) ${name}`, description: [stateText(server), counted(tools, "tool"), transport, product].filter(Boolean).join(" \u00b7 "), ...(error && { detail: error }) };
}
