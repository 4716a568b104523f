import { join } from "node:path";
import * as vscode from "vscode";
import { messageOf, type Daemon } from "../daemon/daemon";
import { actionsOf, isBroken, nameProblem, placesFor, stateText, type Levels, type ServerAction } from "../model/mcpServers";
import { isLayout, pluginTitle, statusText } from "../model/pluginStatus";
import { counted } from "../model/sessions";
import type { PluginInfo, PluginServer } from "../protocol";
import { addToFile, folderServers, removeFromFile, serverFile, userFile } from "./mcpFiles";
import { signIn } from "./mcpSignIn";
import { showTexts, type Texts } from "./textDocuments";
import { sayOutcome } from "./mcpOutcome";
import { shownWhole, type Say } from "../toasts";
import { labelText } from "../model/printable";

type Item = vscode.QuickPickItem & { plugin?: string; title?: string; server?: string; file?: string; error?: string; add?: boolean; review?: boolean };

/** Parts are the parts of the extension that the list of servers uses. */
export interface Parts {
  daemon: Daemon;
  texts: Texts;
  say: Say;
  /** lets the user review and trust a plugin of a folder */
  review: (plugin: string, cwd: string) => Promise<void>;
}

interface ActionButton extends vscode.QuickInputButton {
  action: ServerAction;
}

const icons: Record<string, string> = { ready: "pass", failed: "error", quarantined: "error", unreachable: "warning", starting: "sync" };

const buttons: Record<ServerAction, ActionButton> = {
  log: { action: "log", iconPath: new vscode.ThemeIcon("output"), tooltip: "Show the log" },
  restart: { action: "restart", iconPath: new vscode.ThemeIcon("refresh"), tooltip: "Restart it" },
  signIn: { action: "signIn", iconPath: new vscode.ThemeIcon("sign-in"), tooltip: "Sign in" },
  signOut: { action: "signOut", iconPath: new vscode.ThemeIcon("sign-out"), tooltip: "Sign out" },
  configure: { action: "configure", iconPath: new vscode.ThemeIcon("edit"), tooltip: "Open its file" },
  remove: { action: "remove", iconPath: new vscode.ThemeIcon("trash"), tooltip: "Remove it" },
};

/** showServers lists the MCP servers of the plugins in a directory, with their states. Buttons act on a server; the last entry adds one. */
export async function showServers(parts: Parts, cwd: string | undefined): Promise<void> {
  const { daemon, texts, review, say } = parts;
  const place = cwd === undefined ? {} : { cwd };
  const pick = Object.assign(vscode.window.createQuickPick<Item>(), { title: "MCP servers", matchOnDescription: true });
  let levels: Levels = { cwd };
  const restarting = new Set<string>(); // plugin/server
  const load = async () => {
    const { data, userDir } = await daemon.call("plugin/list", place);
    levels = { cwd, ...(userDir && { user: userFile(userDir) }) };
    pick.items = [...data.flatMap((one) => itemsOf(one, restarting)), { label: "$(add) Add a server\u2026", add: true }];
    pick.placeholder = pick.items.some(({ server }) => server) ? "Choose a server to see its log" : "There are no MCP servers yet.";
  };
  const act = async ({ plugin = "", title = plugin, server = "", file = "", error = "" }: Item, action: ServerAction) => {
    if (action !== "restart" && action !== "signOut") {
      pick.hide();
    }
    switch (action) {
      case "log":
        return showLog(daemon, texts, { ...place, name: plugin }, title, error);
      case "remove":
        return (await removeServer(say, levels, server, file)) ? showServers(parts, cwd) : undefined;
      case "configure":
        return void (await vscode.window.showTextDocument(vscode.Uri.file(file)));
      case "signIn":
        return void ((await signIn(daemon, { ...place, plugin, server })) && say(undefined, `You are signed in to ${server}.`));
      case "signOut":
        await daemon.call("mcp/logout", { ...place, plugin, server });
        return load();
      case "restart":
        restarting.add(`${plugin}/${server}`);
        await load();
        try {
          await daemon.call("mcp/restart", { ...place, plugin, server });
        } finally {
          restarting.delete(`${plugin}/${server}`);
        }
        return load();
    }
  };
  const run = (work: Promise<void>) => void work.catch((error) => vscode.window.showErrorMessage(...shownWhole(`lashd: ${messageOf(error)}`)));
  pick.onDidAccept(() => {
    const [item] = pick.activeItems;
    if (item?.server) {
      return run(act(item, "log"));
    }
    pick.hide();
    if (item?.review) {
      return run(review(item.plugin ?? "", cwd ?? ""));
    }
    return item?.add ? run(addServer(parts, levels).then((added) => (added ? showServers(parts, cwd) : undefined))) : undefined;
  });
  const changes = daemon.onServerEvent((news) => news.type === "plugin/changed" && run(load()));
  pick.onDidTriggerItemButton(({ item, button }) => run(act(item, (button as ActionButton).action)));
  pick.onDidHide(() => (changes.dispose(), pick.dispose()));
  pick.show();
  await load();
}

/** itemsOf returns the entries of the servers of a plugin. restarting has the names of those that restart, each after that of its plugin. */
function itemsOf(plugin: PluginInfo, restarting: ReadonlySet<string>): Item[] {
  const { name, dir, servers = [] } = plugin;
  const known = servers.map((one) => {
    const server: PluginServer = restarting.has(`${name}/${one.name}`) ? { ...one, state: "starting", error: undefined } : one;
    const file = serverFile(dir, server.name);
    return { ...describe(server), plugin: name, title: pluginTitle(plugin), server: server.name, file: file?.file, error: isBroken(server) ? server.error : "", buttons: actionsOf(server, file).map((action) => buttons[action]) };
  });
  return [...known, ...unapproved(plugin).filter(({ label }) => !known.some(({ server }) => label.endsWith(` ${server}`)))];
}

/** unapproved returns the servers of a folder's .mcp.json that wait for approval. */
function unapproved({ name, dir = "", status, ...plugin }: PluginInfo): Item[] {
  const waits = isLayout({ ...plugin, name, status }) && (status === "untrusted" || status === "modified");
  return waits ? folderServers(dir).map((server) => ({ label: `$(shield) ${labelText(server)}`, description: statusText(status), detail: "Choose it to review and approve the .mcp.json of this folder.", plugin: name, review: true })) : [];
}

/** showLog shows the log of a plugin, below the error of a server that does not work. */
async function showLog(daemon: Daemon, texts: Texts, of: { cwd?: string; name: string }, title: string, error: string) {
  const { data } = await daemon.call("plugin/logs", { ...of, limit: 1000 });
  const lines = data.map(({ atMs, level, text }) => `${new Date(atMs).toISOString()} ${level} ${text}`).join("\n") || "The log is empty.";
  await showTexts(texts, `${title}.log`, error === "" ? lines : `${error}\n\nLog:\n${lines}`);
}

/** addServer asks for a server and for whom, and adds it to a file. It reports whether to show the servers again. */
async function addServer({ daemon, review, say }: Parts, levels: Levels): Promise<boolean> {
  const { user, cwd } = levels;
  const title = "Add an MCP server";
  const name = await vscode.window.showInputBox({ title: `${title}: name`, prompt: "Its tools are mcp__NAME__TOOL.", placeHolder: "docs", validateInput: nameProblem, ignoreFocusOut: true });
  const line = name && (await vscode.window.showInputBox({
    title: `${title}: ${name}`, prompt: "A program with its arguments, or the URL of an HTTP server. Put secrets into variables: ${NAME}.", placeHolder: "npx -y docs-server", ignoreFocusOut: true,
  }));
  const where = line?.trim() ? await vscode.window.showQuickPick(placesFor(levels), { title: `${title}: which sessions can use ${name}?`, ignoreFocusOut: true }) : undefined;
  if (!name || !line || !where) {
    return false;
  }
  if (where.folder !== undefined) {
    addToFile(join(where.folder, ".mcp.json"), name, line);
    await daemon.change("plugin/reload", { cwd: where.folder });
    await review("project", where.folder);
    return false;
  }
  addToFile(user ?? "", name, line, cwd);
  sayOutcome(daemon, say, { cwd, plugin: "mcp", names: [name] }).catch((error) => void say(undefined, messageOf(error)));
  return true;
}

/** removeServer removes a server from its file if the user confirms it, and reports whether that happened. */
async function removeServer(say: Say, { user }: Levels, name: string, file: string): Promise<boolean> {
  const remove = "Remove";
  const confirmed = (await vscode.window.showWarningMessage(`Remove the MCP server ${name}?`, { modal: true, detail: `It is removed from ${file}.` }, remove)) === remove;
  if (confirmed) {
    removeFromFile(file, name, file === user);
    void say(undefined, `Removed ${name}.`);
  }
  return confirmed;
}

/** describe shows a server: its name, its state and its error. */
export function describe(server: PluginServer): vscode.QuickPickItem {
  const { name, transport, state, tools, product, error, login } = server;
  const icon = login === "needed" ? "sign-in" : (icons[state] ?? "circle-outline");
  return { label: `$(${icon}) ${labelText(name)}`, description: labelText([stateText(server), counted(tools, "tool"), transport, product].filter(Boolean).join(" \u00b7 ")), ...(error && { detail: labelText(error) }) };
}
