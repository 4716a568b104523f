import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import { commandOf, commandSuggestions, operationArgs, ownCommand } from "../model/slashCommands";
import type { CommandCall, SessionID } from "../protocol";
import { attachmentOf, mentionSuggestions } from "./mentions";
import type { FromWebview, Suggestion, ToWebview } from "./messages";

/** InputRequest is a request of the page about the text that the user types. */
type InputRequest = FromWebview & { type: "suggest" | "mention" | "command" | "history" };

/** The number of earlier inputs that the user can go back to. */
const maxHistory = 100;

/** handleInput answers a request about the input of a session in a directory. */
export async function handleInput(request: InputRequest, daemon: Daemon, sessionId: SessionID, cwd: string, post: (message: ToWebview) => void): Promise<void> {
  switch (request.type) {
    case "suggest": {
      const suggestions = request.mark === "@" ? await mentionSuggestions(request.word) : await commandsFor(request.word, daemon, sessionId);
      return post({ type: "suggestions", id: request.id, suggestions });
    }
    case "mention":
      return post(await attachmentOf(request.mention));
    case "command":
      return runCommand(daemon, sessionId, request.name, request.text);
    case "history": {
      const { data } = await daemon.call("session/inputs", { cwd, limit: maxHistory });
      return post({ type: "history", inputs: data.map(({ text }) => text).filter((text) => text !== "") });
    }
  }
}

async function commandsFor(word: string, daemon: Daemon, sessionId: SessionID): Promise<Suggestion[]> {
  const [commands, operations] = await Promise.all([daemon.call("command/list", { sessionId }), daemon.call("operation/list", { sessionId })]);
  return commandSuggestions(word, commands.data, operations.data);
}

/** takeCommand runs the command at the start of a text and reports that it has, or returns a command or skill of command/list to send with the text. */
export async function takeCommand(daemon: Daemon, sessionId: SessionID, text: string): Promise<{ ran: boolean; command?: CommandCall }> {
  const call = commandOf(text);
  if (!call) {
    return { ran: false };
  }
  const [commands, operations] = await Promise.all([daemon.call("command/list", { sessionId }), daemon.call("operation/list", { sessionId })]);
  if (commands.data.some(({ name }) => name === call.name)) {
    return { ran: false, command: call };
  }
  const known = ownCommand(call.name) !== undefined || operations.data.some(({ name, kind }) => name === call.name && kind !== "query");
  if (known) {
    await runCommand(daemon, sessionId, call.name, call.arguments);
  }
  return { ran: known }; // other texts can begin with a slash, too, such as a path
}

/** runCommand runs a command of the chat: one of the extension, or an operation of a plugin. */
async function runCommand(daemon: Daemon, sessionId: SessionID, name: string, text: string) {
  const own = ownCommand(name);
  if (own !== undefined) {
    await vscode.commands.executeCommand(`lashd.${own}`);
    return;
  }
  const operation = (await daemon.call("operation/list", { sessionId })).data.find((one) => one.name === name);
  if (!operation) {
    throw new Error(`There is no command /${name} any more.`);
  }
  const params = { name, args: operationArgs(operation, text), ...(operation.session !== "forbidden" && { sessionId }) };
  await daemon.change(operation.kind === "task" ? "operation/task" : "operation/command", params);
  void vscode.window.showInformationMessage(`lashd: /${name} has run.`);
}
