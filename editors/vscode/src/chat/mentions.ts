import * as vscode from "vscode";
import { matching } from "../model/fileList";
import { commandText } from "../model/terminalText";
import { lastEditor } from "./lastEditor";
import type { Attached, Mention, Suggestion, ToWebview } from "./messages";
import { attachmentOfFile, attachmentOfSelection } from "./attachments";
import { lastCommand } from "./terminalOutput";
import { workspaceFiles } from "./workspaceFiles";

/** The number of suggestions of each kind. */
const most = { places: 16, symbols: 6 };

/** The number of files of a folder that an attachment lists. */
const maxListed = 500;

/** The part of a command that names its output, in characters. */
const maxLabel = 60;

/** mentionSuggestions returns what the user can attach with a word after @: files, folders, the problems and the output of the terminal. */
export async function mentionSuggestions(word: string): Promise<Suggestion[]> {
  const files = await workspaceFiles();
  const places = word === "" ? files : [...files, ...foldersOf(files)];
  const fixed = special().filter(({ label }) => label.toLowerCase().startsWith(word.toLowerCase()));
  return [
    ...(word === "" ? [] : fixed),
    ...matching(places, word, most.places).map(placeSuggestion),
    ...(word === "" ? fixed : []),
  ];
}

function placeSuggestion({ path, uri }: { path: string; uri: vscode.Uri }): Suggestion {
  const kind = path.endsWith("/") ? "folder" : "file";
  return { ...namesOf(path), icon: kind, insert: `@${path}`, mention: { kind, uri: uri.toString() } };
}

function namesOf(path: string): { label: string; detail: string } {
  const name = path.replace(/\/$/, "").split("/").at(-1) ?? path;
  return { label: name, detail: path === name ? "" : path };
}

function special(): Suggestion[] {
  return [
    { label: "selection", detail: "of the active editor", icon: "selection", mention: { kind: "selection" } },
    { label: "problems", detail: "errors and warnings of the editor", icon: "warning", mention: { kind: "problems" } },
    { label: "terminal", detail: "output of the last command", icon: "terminal", mention: { kind: "terminal" } },
  ];
}

/** foldersOf returns the directories of files, each with a slash at its end. */
function foldersOf(files: { path: string; uri: vscode.Uri }[]): { path: string; uri: vscode.Uri }[] {
  const found = new Map<string, vscode.Uri>();
  for (const { path, uri } of files) {
    let [dir, at] = [path, uri];
    while (dir.includes("/")) {
      [dir, at] = [dir.slice(0, dir.lastIndexOf("/")), vscode.Uri.joinPath(at, "..")];
      found.set(`${dir}/`, at);
    }
  }
  return [...found].map(([path, uri]) => ({ path, uri }));
}

/** symbolSuggestions returns the symbols that a word after @ can mean. It waits for the language servers, which can take long after a start. */
export async function symbolSuggestions(word: string): Promise<Suggestion[]> {
  const found = word.length < 2 ? [] : await vscode.commands.executeCommand<vscode.SymbolInformation[] | undefined>("vscode.executeWorkspaceSymbolProvider", word);
  return (found ?? []).slice(0, most.symbols).map(symbolSuggestion);
}

function symbolSuggestion({ name, location: { uri, range } }: vscode.SymbolInformation): Suggestion {
  const mention: Mention = { kind: "symbol", uri: uri.toString(), name, start: range.start.line, end: range.end.line };
  return { label: name, detail: `${vscode.workspace.asRelativePath(uri)}:${range.start.line + 1}`, icon: "symbol-method", insert: `@${name}`, mention };
}

/** attachmentOf returns the message that attaches what a mention stands for. */
export async function attachmentOf(mention: Mention): Promise<ToWebview> {
  switch (mention.kind) {
    case "file":
      return attachmentOfFile(vscode.Uri.parse(mention.uri));
    case "folder":
      return attach(await folder(vscode.Uri.parse(mention.uri)));
    case "symbol":
      return attach(await symbol(mention));
    case "problems":
      return attach(problems());
    case "terminal":
      return attach(terminal());
    case "selection":
      return attach(selection());
  }
}

const attach = (attached: Attached): ToWebview => ({ type: "attached", attached });

async function folder(uri: vscode.Uri): Promise<Attached> {
  const path = `${vscode.workspace.asRelativePath(uri)}/`;
  const inside = (await workspaceFiles()).filter((file) => file.path.startsWith(path)).map((file) => file.path);
  const more = inside.length > maxListed ? [`and ${inside.length - maxListed} more files`] : [];
  return { kind: "folder", label: path, text: [...inside.slice(0, maxListed), ...more].join("\n") };
}

async function symbol({ uri, name, start, end }: Mention & { kind: "symbol" }): Promise<Attached> {
  const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(uri));
  const path = vscode.workspace.asRelativePath(document.uri);
  const last = Math.min(end, document.lineCount - 1);
  return { label: `${name}, ${path}:${start + 1}-${last + 1}`, text: document.getText(new vscode.Range(start, 0, last, document.lineAt(last).text.length)) };
}

function problems(): Attached {
  const lines = vscode.languages.getDiagnostics().flatMap(([uri, all]) => all.filter(({ severity }) => severity <= vscode.DiagnosticSeverity.Warning).map((problem) => problemText(uri, problem)));
  if (lines.length === 0) {
    throw new Error("The editor shows no errors or warnings.");
  }
  return { kind: "problems", label: "problems", text: lines.join("\n") };
}

function problemText(uri: vscode.Uri, { severity, range, message, source }: vscode.Diagnostic): string {
  const kind = severity === vscode.DiagnosticSeverity.Error ? "error" : "warning";
  return `${vscode.workspace.asRelativePath(uri)}:${range.start.line + 1}:${range.start.character + 1}: ${kind}: ${message}${source ? ` (${source})` : ""}`;
}

function terminal(): Attached {
  const last = lastCommand();
  if (!last) {
    throw new Error("The terminals of this window have run no command since lashd started. Run one, and try again.");
  }
  return { kind: "terminal", label: last.command.split("\n")[0]?.slice(0, maxLabel) || "terminal", text: commandText(last.command, last.output) };
}

function selection(): Attached {
  const editor = lastEditor();
  if (!editor) {
    throw new Error("No editor is open.");
  }
  return attachmentOfSelection(editor);
}
