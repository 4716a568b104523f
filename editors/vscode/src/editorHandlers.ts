import { relative } from "node:path";
import * as vscode from "vscode";
import { isDocumentInside, resolveInside, sessionPath } from "./model/folders";
import { openFolders } from "./openFolders";
import type { ClientTool } from "./protocol";
import type { Choices } from "./views/choices";
import { confirmEdit } from "./views/proposedEdit";

/** Handler is an editor tool and its implementation. */
export interface Handler {
  tool: Omit<ClientTool, "name">;
  run: (args: never, from: CallContext) => Promise<string> | string;
}

/** CallContext is the context of a tool call. */
export interface CallContext {
  /** working directory of the session; paths are relative to it */
  cwd: string;
  /** the last active text editor; the chat may cover it */
  editor?: vscode.TextEditor;
  choices: Choices;
  /** aborted when the call is cancelled */
  signal: AbortSignal;
}

interface Place {
  path: string;
  line?: number;
}

interface Edit {
  path: string;
  old: string;
  new: string;
}

const object = (properties: Record<string, unknown>, required: string[] = []) => ({ type: "object", properties, required, additionalProperties: false });

const path = { type: "string", description: "absolute, or relative to the working directory" };

/** handlers maps the names of editor tools to their handlers. */
export const handlers: Record<string, Handler> = {
  editor_open_files: {
    run: openFiles,
    tool: {
      description: "Lists the files that the user has open in the editor, and the selection in the active file if that is in an open folder.",
      input: object({}),
      kind: "read",
      replay: "safe",
    },
  },
  editor_diagnostics: {
    run: diagnostics,
    tool: {
      description: "Lists the errors and warnings that the editor shows, for one file or for all files of the open folders.",
      input: object({ path }),
      kind: "read",
      replay: "safe",
    },
  },
  editor_reveal: {
    run: reveal,
    tool: {
      description: "Shows the user a file in the editor, at a line.",
      input: object({ path, line: { type: "integer", minimum: 1 } }, ["path"]),
      kind: "read",
      replay: "safe",
    },
  },
  editor_apply_edit: {
    run: applyEdit,
    tool: {
      description: "Replaces text that occurs exactly once in a file, including unsaved changes. The user reviews the edit in the editor and can discard it.",
      input: object({ path, old: { type: "string", minLength: 1 }, new: { type: "string" } }, ["path", "old", "new"]),
      kind: "edit",
      deadlineMs: 600_000,
    },
  },
  editor_run_task: {
    run: runTask,
    tool: {
      description: "Runs an editor task that the workspace defines, such as a build, and returns its exit code. Without a name, lists the tasks.",
      input: object({ name: { type: "string" } }),
      kind: "execute",
      deadlineMs: 600_000,
    },
  },
};

/** fileOf resolves a path from a tool call. It throws if the file is outside the open folders. */
function fileOf(path: string, cwd: string): vscode.Uri {
  const file = resolveInside(openFolders(), cwd, path);
  if (file === undefined) {
    throw new Error(`${path} is outside the folders that are open in the editor`);
  }
  return vscode.Uri.file(file);
}

/** pathOf returns the path of a file for the agent, relative to cwd if possible. */
function pathOf(uri: vscode.Uri, cwd: string): string {
  if (uri.scheme !== "file") {
    return uri.toString();
  }
  const file = sessionPath(openFolders(), uri.fsPath);
  const path = relative(cwd, file);
  return path.startsWith("..") ? file : path;
}

function openFiles(_: object, { cwd, editor = vscode.window.visibleTextEditors[0] }: CallContext): string {
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  const files = tabs.flatMap(({ input, isDirty }) => (input instanceof vscode.TabInputText ? [`${pathOf(input.uri, cwd)}${isDirty ? " (unsaved)" : ""}`] : []));
  if (!editor || editor.document.isClosed) {
    return files.join("\n") || "No file is open.";
  }
  const { start, end, isEmpty } = editor.selection;
  const path = pathOf(editor.document.uri, cwd);
  if (!isDocumentInside(openFolders(), editor.document.uri)) {
    return `${files.join("\n")}\n\nActive file: ${path}, which is outside the folders that are open in the editor, so its selection is not shown`;
  }
  const selected = isEmpty ? `at line ${start.line + 1}` : `selected lines ${start.line + 1} to ${end.line + 1}:\n${editor.document.getText(editor.selection)}`;
  return `${files.join("\n")}\n\nActive file: ${path}, ${selected}`;
}

function diagnostics({ path }: { path?: string }, { cwd }: CallContext): string {
  const file = path === undefined ? undefined : fileOf(path, cwd);
  const inside = () => vscode.languages.getDiagnostics().filter(([uri, found]) => found.length > 0 && isDocumentInside(openFolders(), uri));
  const all: [vscode.Uri, vscode.Diagnostic[]][] = file ? [[file, vscode.languages.getDiagnostics(file)]] : inside();
  const lines = all.flatMap(([uri, found]) =>
    found.map((d) => `${pathOf(uri, cwd)}:${d.range.start.line + 1}:${d.range.start.character + 1} ${vscode.DiagnosticSeverity[d.severity].toLowerCase()}: ${d.message}`),
  );
  return lines.slice(0, 200).join("\n") || "No problems.";
}

async function reveal({ path, line = 1 }: Place, { cwd }: CallContext): Promise<string> {
  const range = new vscode.Range(line - 1, 0, line - 1, 0);
  await vscode.window.showTextDocument(fileOf(path, cwd), { selection: range, preserveFocus: true, viewColumn: vscode.ViewColumn.Beside });
  return `Showing ${path}.`;
}

async function applyEdit({ path, old, new: text }: Edit, { cwd, choices, signal }: CallContext): Promise<string> {
  const uri = fileOf(path, cwd);
  const before = (await vscode.workspace.openTextDocument(uri)).getText();
  const at = findOnce(before, old, path);
  const after = before.slice(0, at) + text + before.slice(at + old.length);
  if (!(await confirmEdit(choices, { path, before, after, signal }))) {
    throw new Error("the user discarded the edit");
  }
  const document = await vscode.workspace.openTextDocument(uri); // it may have changed during the review
  const from = findOnce(document.getText(), old, path);
  const edit = new vscode.WorkspaceEdit();
  edit.replace(uri, new vscode.Range(document.positionAt(from), document.positionAt(from + old.length)), text);
  if (!(await vscode.workspace.applyEdit(edit)) || !(await document.save())) {
    throw new Error(`the editor could not apply or save the edit to ${path}`);
  }
  return `Edited ${path}.`;
}

/** findOnce returns the index of a part that must occur exactly once in a text. */
function findOnce(text: string, part: string, path: string): number {
  const at = text.indexOf(part);
  if (at < 0 || text.includes(part, at + 1)) {
    throw new Error(at < 0 ? `${path} does not contain the old text` : `${path} contains the old text more than once`);
  }
  return at;
}

async function runTask({ name }: { name?: string }): Promise<string> {
  const tasks = await vscode.tasks.fetchTasks();
  const task = tasks.find((one) => one.name === name);
  if (name === undefined) {
    return tasks.map((one) => `${one.name} (${one.source})`).join("\n") || "The workspace has no tasks.";
  }
  if (!task) {
    throw new Error(`the workspace has no task "${name}"`);
  }
  const execution = await vscode.tasks.executeTask(task);
  return new Promise((resolve) => {
    const ended = (how: string) => {
      listening.dispose();
      resolve(`${name} finished${how}.`);
    };
    // A task that only runs other tasks has no process. For other tasks, the end of the process comes first.
    const listening = vscode.Disposable.from(
      vscode.tasks.onDidEndTaskProcess((end) => end.execution === execution && ended(` with exit code ${end.exitCode}`)),
      vscode.tasks.onDidEndTask((end) => end.execution === execution && ended("")),
    );
  });
}
