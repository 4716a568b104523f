import { existsSync, mkdirSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { serversIn, withoutServer, withServer } from "../model/mcpServers";

/** serverFile returns the file of a plugin that declares an MCP server, and whether the server can be removed from it; undefined if there is none. */
export function serverFile(dir: string | undefined, server: string): { file: string; removable: boolean } | undefined {
  const file = dir === undefined ? undefined : [join(dir, ".mcp.json"), join(dir, "plugin.json")].find((path) => existsSync(path));
  return file === undefined ? undefined : { file, removable: file.endsWith(".mcp.json") && serversIn(smallText(file)).includes(server) };
}

/** layoutTitle names the files that a folder has for agents, with the servers of its .mcp.json. */
export function layoutTitle(dir: string): string {
  const servers = folderServers(dir);
  const parts: Record<string, string[]> = { ".mcp.json": [""], ".claude": ["skills", "commands", "agents", "settings.json", "settings.local.json"], ".agents": ["skills", "commands", "agents"] };
  const names = Object.keys(parts).filter((name) => parts[name]?.some((part) => existsSync(join(dir, name, part))));
  return names.map((name) => (name === ".mcp.json" && servers.length > 0 ? `${name} (${servers.join(", ")})` : name)).join(", ") || "Files for agents";
}

/** folderServers returns the names of the servers in the .mcp.json of a folder. */
export function folderServers(dir: string): string[] {
  return serversIn(smallText(join(dir, ".mcp.json")));
}

/** The largest .mcp.json that is read for a list, in bytes. */
const maxListed = 1 << 20;

/** smallText returns the text of a file; "" if it is large, not a regular file, or cannot be read. A folder of others can have a link to a device, which never ends. */
function smallText(file: string): string {
  try {
    const stats = statSync(file);
    return stats.isFile() && stats.size <= maxListed ? readFileSync(file, "utf8") : "";
  } catch {
    return "";
  }
}

/** userFile returns the file of the user's own servers in the directory of their plugins, which is the plugin mcp of lash mcp add. */
export function userFile(plugins: string): string {
  return join(plugins, "mcp", ".mcp.json");
}

/** addToFile adds a server to a file, which it creates if necessary. The path of a program becomes absolute, because lashd starts it elsewhere. */
export function addToFile(file: string, name: string, line: string, cwd = ""): void {
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  write(file, named(file, () => withServer(text, name, line, (program) => (/[\\/]/.test(program) && !isAbsolute(program) ? join(cwd, program) : program))));
}

/** removeFromFile removes a server from a file. A plugin that has nothing but its last server goes with it. */
export function removeFromFile(file: string, name: string, whole: boolean): void {
  const rest = named(file, () => withoutServer(readFileSync(file, "utf8"), name));
  if (rest !== undefined || !whole) {
    write(file, rest ?? `${JSON.stringify({ mcpServers: {} }, null, 2)}\n`);
    return;
  }
  rmSync(file);
  try {
    rmdirSync(dirname(file));
  } catch {
    // the directory has other files
  }
}

function named<T>(file: string, change: () => T): T {
  try {
    return change();
  } catch (error) {
    throw error instanceof SyntaxError ? new Error(`read ${file}: ${error.message}; correct the file`) : error;
  }
}

/** write writes a file. Only the user can read a directory that it creates. */
function write(file: string, text: string) {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(file, text);
}
