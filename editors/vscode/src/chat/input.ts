import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import { argumentAt, argumentSuggestions } from "../model/promptArguments";
import { commandOf, commandSuggestions, operationArgs, ownCommand, startWith, type Start } from "../model/slashCommands";
import type { SessionID } from "../protocol";
import { attachmentOf, mentionSuggestions, symbolSuggestions } from "./mentions";
import type { FromWebview, Suggestion, ToWebview } from "./messages";
import type { Resources } from "./resources";
import type { Say } from "../toasts";

/** InputRequest is a request of the page about the text that the user types. */
type InputRequest = FromWebview & { type: "suggest" | "resources" | "mention" | "command" | "history" };

/** Place is the chat in which the user types. */
interface Place {
  daemon: Daemon;
  say: Say;
  sessionId: SessionID;
  cwd: string;
  resources: Resources;
  post: (message: ToWebview) => void;
}

/** The number of earlier inputs that the user can go back to. */
const maxHistory = 100;

/** handleInput answers a request about the input of a chat. */
export async function handleInput(request: InputRequest, place: Place): Promise<void> {
  const { daemon, say, sessionId, cwd, resources, post } = place;
  switch (request.type) {
    case "suggest":
      return suggest(request, place);
    case "resources":
      return post({ type: "resources", mentioned: await resources.mentioned(request.text) });
    case "mention":
      return post(await attachmentOf(request.mention));
    case "command":
      return runCommand(daemon, say, sessionId, request.name, request.text);
    case "history": {
      const { data } = await daemon.call("session/inputs", { cwd, limit: maxHistory });
      return post({ type: "history", inputs: data.map(({ text }) => text).filter((text) => text !== "") });
    }
  }
}

/** suggest answers with suggestions for a word. What language servers and MCP servers know follows the files, because a server can take long. */
async function suggest({ id, mark, word }: InputRequest & { type: "suggest" }, { daemon, sessionId, resources, post }: Place) {
  if (mark !== "@") {
    return post({ type: "suggestions", id, suggestions: await (mark === "/" ? commandsFor(word, daemon, sessionId) : argumentsFor(word, daemon, sessionId)) });
  }
  let suggestions: Suggestion[] = [];
  for (const asked of [mentionSuggestions(word), symbolSuggestions(word).catch(() => []), resources.suggestions(word)]) {
    suggestions = [...suggestions, ...(await asked)];
    post({ type: "suggestions", id, suggestions });
  }
  post({ type: "suggestions", id, suggestions, last: true });
}

/** argumentsFor asks an MCP server for values of the argument of its prompt that the user types at the end of a line. */
async function argumentsFor(line: string, daemon: Daemon, sessionId: SessionID): Promise<Suggestion[]> {
  const [, name = "", text = ""] = /^(\S+)\s([^]*)$/.exec(line) ?? [];
  const { server, prompt, arguments: all = [] } = (await daemon.call("command/list", { sessionId })).data.find((command) => command.name === name) ?? {};
  const typed = argumentAt(text, all);
  if (server === undefined || !typed) {
    return [];
  }
  const { values } = await daemon.call("mcp/complete", { sessionId, server, prompt, argument: typed.argument.name, value: typed.value, arguments: typed.others });
  return argumentSuggestions(text, typed, all, values);
}

/** commandsFor returns the commands that fit a word after /. */
export async function commandsFor(word: string, daemon: Daemon, sessionId: SessionID): Promise<Suggestion[]> {
  const [commands, operations] = await Promise.all([daemon.call("command/list", { sessionId }), daemon.call("operation/list", { sessionId })]);
  return commandSuggestions(word, commands.data, operations.data);
}

/** startOf looks for a command at the start of a text. */
export async function startOf(daemon: Daemon, sessionId: SessionID, text: string): Promise<Start> {
  const call = commandOf(text);
  if (!call) {
    return { kind: "text" };
  }
  const [commands, operations] = await Promise.all([daemon.call("command/list", { sessionId }), daemon.call("operation/list", { sessionId })]);
  return startWith(call, commands.data, operations.data);
}

/** runCommand runs a command of the chat: one of the extension, or an operation of a plugin. */
export async function runCommand(daemon: Daemon, say: Say, sessionId: SessionID, name: string, text: string): Promise<void> {
  const own = ownCommand(name);
  if (own !== undefined) {
    await vscode.commands.executeCommand(`lashd.${own}`, undefined, text);
    return;
  }
  const operation = (await daemon.call("operation/list", { sessionId })).data.find((one) => one.name === name);
  if (!operation) {
    throw new Error(`There is no command /${name} any more.`);
  }
  const params = { name, args: operationArgs(operation, text), ...(operation.session !== "forbidden" && { sessionId }) };
  await daemon.change(operation.kind === "task" ? "operation/task" : "operation/command", params);
  void say(sessionId, `/${name} has run.`);
}
