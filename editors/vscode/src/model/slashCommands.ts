import type { Suggestion } from "../chat/messages";
import type { CommandCall, CommandInfo, OperationInfo } from "../protocol";

/** Command is a command of the chat that the extension runs itself. */
interface Command {
  name: string;
  /** further names, which people know from elsewhere */
  also?: readonly string[];
  about: string;
  icon: string;
  /** command of VS Code, without the prefix "lashd." */
  run: string;
}

/** own are the commands of the extension. lash chat has the same ones, with the same names. */
const own: readonly Command[] = [
  { name: "new", also: ["clear"], about: "Start a session here; this one stays in the list", icon: "add", run: "clearSession" },
  { name: "sessions", also: ["resume", "find"], about: "Find a session by its words", icon: "search", run: "findSession" },
  { name: "fork", about: "Start a session with this history", icon: "repo-forked", run: "forkSession" },
  { name: "rename", about: "Change the title of the session", icon: "edit", run: "renameSession" },
  { name: "undo", about: "Undo the newest turn: the conversation, the files, or both", icon: "discard", run: "undoTurn" },
  { name: "turns", also: ["rewind"], about: "Choose a turn, and go back to before it", icon: "history", run: "goBack" },
  { name: "diff", about: "Show the files that the newest turn changed", icon: "diff", run: "newestChanges" },
  { name: "stop", about: "Stop the turn", icon: "debug-stop", run: "stopSession" },
  { name: "compact", about: "Replace older history by a summary, after a preview", icon: "fold", run: "compactSession" },
  { name: "context", about: "Show what fills the context window", icon: "pie-chart", run: "showContext" },
  { name: "model", about: "Choose the model", icon: "hubot", run: "chooseModel" },
  { name: "effort", about: "Choose the reasoning effort", icon: "dashboard", run: "chooseEffort" },
  { name: "mode", also: ["approve", "approvals", "permissions"], about: "Choose what lashd asks about", icon: "shield", run: "chooseMode" },
  { name: "sandbox", about: "Choose the sandbox of commands", icon: "lock", run: "chooseSandbox" },
  { name: "rules", about: "List and add approval rules", icon: "law", run: "showRules" },
  { name: "memory", about: "List and open the instructions of the model", icon: "book", run: "showInstructions" },
  { name: "attach", about: "Attach files, images or PDF documents", icon: "attach", run: "attachFile" },
  { name: "tools", about: "Show the plugins and tools of the session", icon: "tools", run: "tools.focus" },
  { name: "mcp", about: "List, add and remove MCP servers", icon: "server", run: "mcpServers" },
  { name: "tasks", about: "Show the background tasks", icon: "server-process", run: "tasks.focus" },
  { name: "login", about: "Set up a provider: its key, its login or its address", icon: "key", run: "setUpProvider" },
  { name: "logout", about: "Remove an API key", icon: "trash", run: "removeKey" },
  { name: "trace", about: "Show what the daemon recorded about a turn", icon: "list-tree", run: "showTrace" },
  { name: "snapshot", about: "Save the state of the session", icon: "save-all", run: "createSnapshot" },
  { name: "help", about: "List the commands", icon: "question", run: "help" },
];

const namesOf = ({ name, also = [] }: Command): string[] => [name, ...also];

/** ownNames returns the names of the commands of the extension, each with its further names. */
export function ownNames(): string[][] {
  return own.map(namesOf);
}

/** ownCommand returns the command of VS Code that a name of the chat runs; undefined for operations of plugins. */
export function ownCommand(name: string): string | undefined {
  return own.find((command) => namesOf(command).includes(name))?.run;
}

/** Ranked is a suggestion and how well it fits what is typed. */
interface Ranked {
  suggestion: Suggestion;
  rank: number;
}

/** commandSuggestions returns the commands that fit a word, best first: those of the extension, those that become a part of an input, and the operations of plugins. */
export function commandSuggestions(word: string, commands: readonly CommandInfo[], operations: readonly OperationInfo[]): Suggestion[] {
  const mine = own.map((command): Ranked => {
    const name = namesOf(command).reduce((best, other) => (rankOf(other, word) < rankOf(best, word) ? other : best));
    return { rank: rankOf(name, word), suggestion: { label: `/${name}`, detail: command.about, icon: command.icon, command: name } };
  });
  const sent = commands.map(({ name, kind, description = "", argumentHint = "" }): Ranked => {
    const suggestion = { label: `/${name}`, detail: description, ...(argumentHint && { hint: argumentHint }), icon: kind === "skill" ? "lightbulb" : "terminal", insert: `/${name}` };
    return { rank: rankOf(name, word), suggestion };
  });
  const others = operations.filter(({ kind }) => kind !== "query").map(({ name, description = "", plugin }): Ranked => {
    return { rank: rankOf(name, word), suggestion: { label: `/${name}`, detail: description || `of the plugin ${plugin}`, icon: "extensions", command: name } };
  });
  return [...mine, ...sent, ...others].filter(({ rank }) => rank < unfit).toSorted((a, b) => a.rank - b.rank).map(({ suggestion }) => suggestion);
}

/** The rank of a name that does not fit. */
const unfit = 4;

/**
 * rankOf says how well the name of a command fits a word: 0 if it is the word, 1 if it begins with it, 2 if a later part of it does, 3 if it
 * contains at least two letters, unfit otherwise. lash chat has the same rule.
 */
function rankOf(name: string, word: string): number {
  const [whole, typed] = [name.toLowerCase(), word.toLowerCase()];
  if (whole.startsWith(typed)) {
    return whole === typed ? 0 : 1;
  }
  return whole.split(/[:_-]+/).some((part) => part.startsWith(typed)) ? 2 : typed.length > 1 && whole.includes(typed) ? 3 : unfit;
}

/** commandOf returns the command at the start of an input; undefined if the input has none. */
export function commandOf(text: string): Required<CommandCall> | undefined {
  const found = /^\/([^\s/]+)(?:\s+([^]*))?$/.exec(text);
  return found?.[1] === undefined ? undefined : { name: found[1], arguments: found[2] ?? "" };
}

/** Start is what an input begins with: plain text, a command or skill for the model, a command of this window, or an unknown command. */
export type Start = { kind: "text" } | { kind: "sent"; command: CommandCall } | { kind: "own" | "operation"; call: Required<CommandCall> } | { kind: "unknown"; name: string; near?: string };

/** startWith says what a command at the start of an input is. A file of the workspace cannot take the name of a command of the extension. */
export function startWith(call: Required<CommandCall>, commands: readonly CommandInfo[], operations: readonly OperationInfo[]): Start {
  const { name } = call;
  if (ownCommand(name) !== undefined) {
    return { kind: "own", call };
  }
  if (commands.some((command) => command.name === name)) {
    return { kind: "sent", command: call };
  }
  const known = operations.some((operation) => operation.name === name && operation.kind !== "query");
  return known ? { kind: "operation", call } : { kind: "unknown", name, near: commandSuggestions(name, commands, operations)[0]?.label.slice(1) };
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
