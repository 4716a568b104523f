import type { PluginServer } from "../protocol";
import { counted } from "./sessions";

/** ServerAction is a button of an MCP server. */
export type ServerAction = "log" | "restart" | "signIn" | "signOut" | "configure" | "remove";

/** The states in which a server does not work. */
const broken = new Set(["failed", "quarantined", "unreachable"]);

/** isBroken reports whether a server does not work, so that a user wants to know why. */
export function isBroken({ state }: PluginServer): boolean {
  return broken.has(state);
}

/** isSettled reports whether the start of a server has ended, or waits for the user. */
export function isSettled(server: PluginServer): boolean {
  return server.state === "ready" || server.login === "needed" || isBroken(server);
}

/** outcomeText says in a sentence or two how the start of a server ended. */
export function outcomeText(server: PluginServer): string {
  const { name, tools, error = "" } = server;
  if (server.login === "needed") {
    return `${name} needs you to sign in.`;
  }
  if (isBroken(server)) {
    return `${name} ${stateText(server)}${error === "" ? "." : `: ${error.replace(/\.?$/, ".")}`}`;
  }
  const uses = "Your sessions can use it from their next turn on.";
  return server.state === "ready" ? `${name} is ready, with ${counted(tools, "tool")}. ${uses}` : `${name} is added, but has not started yet.`;
}

/** actionsOf returns what a user can do with a server, the most useful first. file is the file that declares it, if it is known. */
export function actionsOf(server: PluginServer, file?: { removable: boolean }): ServerAction[] {
  const account: ServerAction[] = server.login === "needed" ? ["signIn"] : server.login === "loggedIn" ? ["signOut"] : [];
  const run: ServerAction[] = isBroken(server) ? ["restart", "log"] : ["log", "restart"];
  return [...account, ...run, ...(file ? (["configure"] as const) : []), ...(file?.removable ? (["remove"] as const) : [])];
}

const states: Record<string, string> = { idle: "not started yet", quarantined: "failed to start", unreachable: "cannot be reached", resumed: "starts with its next call" };

/** stateText says in words how a server is. */
export function stateText({ state, login }: PluginServer): string {
  const text = states[state] ?? state;
  return login === "needed" ? "needs you to sign in" : login === "loggedIn" ? `${text}, signed in` : text;
}

/** Levels says where servers can be added: for all sessions of the user, or in a folder. */
export interface Levels {
  /** the file of the user's own servers */
  user?: string;
  cwd?: string;
}

/** placesFor returns the places where a server can be added, as entries of a list. The open folder is first, because most servers belong to one. */
export function placesFor({ user, cwd }: Levels): { label: string; detail: string; folder?: string }[] {
  return [
    ...(cwd === undefined ? [] : [{ label: "$(root-folder) This folder", detail: "Stored in its .mcp.json. You review the file next; then the server starts.", folder: cwd }]),
    ...(user === undefined ? [] : [{ label: "$(account) All of your sessions", detail: `Stored in ${user}, as lash mcp add does.` }]),
  ];
}

/** ServersFile is an .mcp.json. */
interface ServersFile {
  mcpServers?: Record<string, unknown>;
}

/** serversIn returns the names of the servers in an .mcp.json; none if the text cannot be read. */
export function serversIn(text: string): string[] {
  try {
    return Object.keys((JSON.parse(text) as ServersFile).mcpServers ?? {});
  } catch {
    return [];
  }
}

/**
 * withServer returns an .mcp.json with one more server: a URL, or a program with its arguments. place returns the path of the program. It
 * throws if the text has the server already.
 */
export function withServer(text: string, name: string, line: string, place = (program: string) => program): string {
  const file = (text.trim() === "" ? {} : JSON.parse(text)) as ServersFile;
  if (file.mcpServers?.[name] !== undefined) {
    throw new Error(`There is a server ${name} already. Remove it first, or choose another name.`);
  }
  const [command = "", ...args] = wordsOf(line);
  const server = /^https?:\/\//.test(command) ? { type: "http", url: command } : { command: place(command), ...(args.length > 0 && { args }) };
  return `${JSON.stringify({ ...file, mcpServers: { ...file.mcpServers, [name]: server } }, null, 2)}\n`;
}

/** withoutServer returns an .mcp.json without a server; undefined if nothing is left in it. */
export function withoutServer(text: string, name: string): string | undefined {
  const { mcpServers = {}, ...others } = JSON.parse(text) as ServersFile;
  const servers = Object.entries(mcpServers).filter(([server]) => server !== name);
  const left = servers.length + Object.keys(others).length > 0;
  return left ? `${JSON.stringify({ ...others, mcpServers: Object.fromEntries(servers) }, null, 2)}\n` : undefined;
}

/** wordsOf splits a command line at spaces. Single and double quotes keep words together. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g)].map(([word]) => word.replace(/"([^"]*)"|'([^']*)'/g, "$1$2"));
}

/** nameProblem says why a text cannot be the name of a server, or returns "" if it can be one. */
export function nameProblem(name: string): string {
  return /^[A-Za-z0-9_-]+$/.test(name) ? "" : "A name has letters, digits, - and _ only.";
}
