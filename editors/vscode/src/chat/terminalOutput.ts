import * as vscode from "vscode";
import { plainOutput } from "../model/terminalText";

/** Ran is a command of a terminal with its output so far. */
interface Ran {
  command: string;
  raw: string;
}

/** The output of a command that is read, in characters. */
const maxRaw = 200_000;

let last: Ran | undefined;

/** watchTerminals remembers the last command of the terminals of this window, in terminals with the shell integration of VS Code. */
export function watchTerminals(): vscode.Disposable {
  return vscode.window.onDidStartTerminalShellExecution(({ execution }) => void read(execution));
}

async function read(execution: vscode.TerminalShellExecution) {
  const ran: Ran = { command: execution.commandLine.value, raw: "" };
  last = ran;
  for await (const data of execution.read()) {
    ran.raw = (ran.raw + data).slice(-maxRaw);
  }
}

/** lastCommand returns the last command and its output; undefined if there was none. */
export function lastCommand(): { command: string; output: string } | undefined {
  return last && { command: last.command, output: plainOutput(last.raw) };
}
