import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import { useText } from "../model/instructions";
import type { InstructionFile, SessionID } from "../protocol";
import { labelText } from "../model/printable";

type Item = vscode.QuickPickItem & { run?: () => Promise<unknown> };

/**
 * showInstructions lists the files of instructions that the model of a session gets, and opens one. The user can also add a line to their own;
 * the text "add LINE" does it at once.
 */
export async function showInstructions(daemon: Daemon, sessionId: SessionID, text: string): Promise<void> {
  const { data, userFile } = await daemon.call("instruction/list", { sessionId });
  const line = /^add\s+(\S[^]*)$/.exec(text)?.[1];
  if (line !== undefined) {
    return add(userFile, line);
  }
  const own = data.filter(({ origin }) => origin === "user");
  const workspace = data.filter(({ origin }) => origin === "workspace");
  const items: Item[] = [
    ...group("For all of your sessions", own),
    ...group("Of the folder", workspace),
    { label: "", kind: vscode.QuickPickItemKind.Separator },
    { label: "$(add) Add a line to your own instructions\u2026", description: userFile, run: () => addLine(userFile) },
    ...(own.some(({ path }) => path === userFile) ? [] : [{ label: "$(new-file) Write your own instructions", description: userFile, run: () => open(userFile) }]),
    ...(workspace.length > 0 ? [] : [{ label: "$(info) This folder has no instructions", description: "/init in a chat writes an AGENTS.md" }]),
  ];
  const placeHolder = data.length > 0 ? "The model gets these files. Choose one to open it." : "The model of this session gets no instructions yet.";
  await (await vscode.window.showQuickPick(items, { title: "Instructions", placeHolder, matchOnDescription: true, matchOnDetail: true }))?.run?.();
}

function group(title: string, files: InstructionFile[]): Item[] {
  const entries = files.map((file): Item => ({ label: `$(book) ${labelText(file.name)}`, description: labelText(useText(file)), ...(file.description && { detail: labelText(file.description) }), run: () => open(file.path) }));
  return entries.length > 0 ? [{ label: title, kind: vscode.QuickPickItemKind.Separator }, ...entries] : [];
}

/** open opens a file. One that does not exist is created when the user saves it. */
async function open(path: string) {
  const uri = vscode.Uri.file(path);
  await vscode.window.showTextDocument(existsSync(path) ? uri : uri.with({ scheme: "untitled" }));
}

/** addLine asks for a line and adds it to the user's own instructions. */
async function addLine(path: string) {
  const line = await vscode.window.showInputBox({ title: "Add a line to your own instructions", prompt: "The models of all of your sessions get it, from their next turn on.", placeHolder: "Answer in British English." });
  await (line?.trim() ? add(path, line) : undefined);
}

async function add(path: string, line: string) {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const whole = !existsSync(path) || /(^|\n)$/.test(readFileSync(path, "utf8"));
  appendFileSync(path, `${whole ? "" : "\n"}- ${line.trim()}\n`);
  await open(path);
}
