import type { Suggestion } from "../chat/messages";
import type { CommandCall, CommandInfo, OperationInfo } from "../protocol";

/** Command is a command of the chat that the extension runs itself. */
interface Command {
  name: string;
  about: string;
  icon: string;
  /** command of VS Code, without the prefix "lashd." */
  run: string;
}

/** own are the commands of the extension. */
const own: readonly Command[] = [
  { name: "compact", about: "Replace older history by a summary, after a preview", icon: "fold", run: "compactSession" },
  { name: "new", about: "Start a session", icon: "add", run: "newSession" },
  { name: "fork", about: "Start a session with this history", icon: "repo-forked", run: "forkSession" },
  { name: "rename", about: "Change the title of the session", icon: "edit", run: "renameSession" },
  { name: "find", about: "Find a session by its words", icon: "search", run: "findSession" },
  { name: "model", about: "Choose the model", icon: "hubot", run: "chooseModel" },
  { name: "effort", about: "Choose the reasoning effort", icon: "dashboard", run: "chooseEffort" },
  { name: "mode", about: "Choose what lashd asks about", icon: "shield", run: "chooseMode" },
  { name: "sandbox", about: "Choose the sandbox of commands", icon: "lock", run: "chooseSandbox" },
  { name: "rules", about: "List and add approval rules", icon: "law", run: "showRules" },
  { name: "memory", about: "List and open the instructions of the model", icon: "book", run: "showInstructions" },
  { name: "mcp", about: "List, add and remove MCP servers", icon: "server", run: "mcpServers" },
  { name: "trace", about: "Show what the daemon recorded about a turn", icon: "list-tree", run: "showTrace" },
  { name: "snapshot", about: "Save the state of the session", icon: "save-all", run: "createSnapshot" },
];

/** ownCommand returns the command of VS Code that a name of the chat runs; undefined for operations of plugins. */
export function ownCommand(name: string): string | undefined {
  return own.find((command) => command.name === name)?.run;
}

/** commandSuggestions returns the commands whose name begins with a word: those of the extension, those that become a part of an input, and the operations of plugins. */
export function commandSuggestions(word: string, commands: readonly CommandInfo[], operations: readonly OperationInfo[]): Suggestion[] {
  const mine = own.map(({ name, about, icon }): Suggestion => ({ label: `/${name}`, detail: about, icon, command: name }));
  const sent = commands.map(({ name, kind, description = "", argumentHint = "" }): Suggestion => ({ label: `/${name}`, detail: [argumentHint, description].filter(Boolean).join(" \u00b7 "), icon: kind === "skill" ? "lightbulb" : "terminal", insert: `/${name}` }));
  const others = operations.filter(({ kind }) => kind !== "query").map(({ name, description = "", plugin }): Suggestion => ({ label: `/${name}`, detail: description || `of the plugin ${plugin}`, icon: "extensions", command: name }));
  return [...mine, ...sent, ...others].filter(({ label }) => label.startsWith(`/${word.toLowerCase()}`));
}

/** commandOf returns the command at the start of an input; undefined if the input has none. */
export function commandOf(text: string): Required<CommandCall> | undefined {
  const found = /^\/([^\s/]+)(?:\s+([^]*))?$/.exec(text);
  return found?.[1] === undefined ? undefined : { name: found[1], arguments: found[2] ?? "" };
}

/** operationArgs returns the arguments of an operation from the text after its name: a JSON object, or the value of its only text argument. */
export function operationArgs({ name, inputSchema }: OperationInfo, text: string): unknown {
  if (text.startsWith("{") || text === "") {
    return text === "" ? {} : (JSON.parse(text) as unknown);
  }
  const names = Object.entries((inputSchema as { properties?: Record<string, { type?: string }> } | undefined)?.properties ?? {}).filter(([, { type }]) => type === "string");
  const [only] = names;
  if (names.length !== 1 || !only) {
    throw new Error(`/${name} takes its arguments as a JSON object.`);
  }
  return { [only[0]]: text };
}
