import type { PluginServer } from "../protocol";

/** ServerAction is a button of an MCP server. */
export type ServerAction = "log" | "restart" | "signIn" | "signOut" | "configure";

/** actionsOf returns what a user can do with a server. file says whether the file that declares it is known. */
export function actionsOf({ login }: PluginServer, file: boolean): ServerAction[] {
  const account: ServerAction[] = login === "needed" ? ["signIn"] : login === "loggedIn" ? ["signOut"] : [];
  return [...account, "log", "restart", ...(file ? (["configure"] as const) : [])];
}

/** stateText says in words how a server is. */
export function stateText({ state, login }: PluginServer): string {
  return login === "needed" ? "needs you to sign in" : login === "loggedIn" ? `${state}, signed in` : state;
}

/** withServer returns an .mcp.json with one more server: a URL, or a program with its arguments. It throws if the text has the server already. */
export function withServer(text: string, name: string, line: string): string {
  const file = (text.trim() === "" ? {} : JSON.parse(text)) as { mcpServers?: Record<string, unknown> };
  if (file.mcpServers?.[name] !== undefined) {
    throw new Error(`.mcp.json has a server ${name} already`);
  }
  const [command = "", ...args] = wordsOf(line);
  const server = /^https?:\/\//.test(command) ? { type: "http", url: command } : { command, ...(args.length > 0 && { args }) };
  return `${JSON.stringify({ ...file, mcpServers: { ...file.mcpServers, [name]: server } }, null, 2)}\n`;
}

/** wordsOf splits a command line at spaces. Single and double quotes keep words together. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g)].map(([word]) => word.replace(/"([^"]*)"|'([^']*)'/g, "$1$2"));
}

/** nameProblem says why a text cannot be the name of a server, or returns "" if it can be one. */
export function nameProblem(name: string): string {
  return /^[A-Za-z0-9_-]+$/.test(name) ? "" : "A name has letters, digits, - and _ only.";
}
