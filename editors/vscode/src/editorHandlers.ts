import * as vscode from "vscode";
import type { ClientTool } from "./protocol";

/** Handler is a tool that this window offers, and what it does. */
export interface Handler {
  tool: Omit<ClientTool, "name">;
  run: (args: never) => Promise<string> | string;
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

const path = { type: "string", description: "from the workspace, or absolute" };

/** handlers are the tools of the editor, by name. */
export const handlers: Record<string, Handler> = {
  editor_open_files: {
    run: openFiles,
    tool: {
      description: "Lists the files that the person has open in the editor, with what is selected in the one in front.",
      input: object({}),
      kind: "read",
      replay: "safe",
    },
  },
  editor_diagnostics: {
    run: diagnostics,
    tool: {
      description: "Lists errors and warnings that the editor shows, of one file or of all.",
      input: object({ path }),
      kind: "read",
      replay: "safe",
    },
  },
  editor_reveal: {
    run: reveal,
    tool: {
      description: "Shows the person a file in the editor, at a line.",
      input: object({ path, line: { type: "integer", minimum: 1 } }, ["path"]),
      kind: "read",
      replay: "safe",
    },
  },
  editor_apply_edit: {
    run: applyEdit,
    tool: {
      description: "Replaces a text that occurs once in a file, in the editor: the person sees the change before it is made, and may refuse it. What is not saved counts, too.",
      input: object({ path, old: { type: "string", minLength: 1 }, new: { type: "string" } }, ["path", "old", "new"]),
      kind: "edit",
      deadlineMs: 600_000,
    },
  },
  editor_run_task: {
    run: runTask,
    tool: {
      description: "Runs a task that the workspace defines for the editor, such as its build, and tells how it ended. Without a name it lists them.",
      input: object({ name: { type: "string" } }),
      kind: "execute",
      deadlineMs: 600_000,
    },
  },
};

/** A tool of the editor reaches into the folders that are open, and nowhere else. */
function fileOf(path: string): vscode.Uri {
  const folders = vscode.workspace.workspaceFolders ?? [];
  const uri = path.startsWith("/") || /^[a-z]:/i.test(path) ? vscode.Uri.file(path) : vscode.Uri.joinPath(folders[0]?.uri ?? vscode.Uri.file("/"), path);
  if (!vscode.workspace.getWorkspaceFolder(uri)) {
    throw new Error(`${path} is in no folder that is open in the editor`);
  }
  return uri;
}

function openFiles(): string {
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  const files = tabs.flatMap(({ input, isDirty }) => (input instanceof vscode.TabInputText ? [`${vscode.workspace.asRelativePath(input.uri)}${isDirty ? " (not saved)" : ""}`] : []));
  const editor = vscode.window.activeTextEditor ?? vscode.window.visibleTextEditors[0];
  if (!editor) {
    return files.join("\n") || "No file is open.";
  }
  const { start, end, isEmpty } = editor.selection;
  const front = vscode.workspace.asRelativePath(editor.document.uri);
  const selected = isEmpty ? `at line ${start.line + 1}` : `lines ${start.line + 1} to ${end.line + 1} are selected:\n${editor.document.getText(editor.selection)}`;
  return `${files.join("\n")}\n\nIn front: ${front}, ${selected}`;
}

function diagnostics({ path }: { path?: string }): string {
  const all: [vscode.Uri, vscode.Diagnostic[]][] = path === undefined ? vscode.languages.getDiagnostics() : [[fileOf(path), vscode.languages.getDiagnostics(fileOf(path))]];
  const lines = all.flatMap(([uri, found]) =>
    found.map((d) => `${vscode.workspace.asRelativePath(uri)}:${d.range.start.line + 1}:${d.range.start.character + 1} ${vscode.DiagnosticSeverity[d.severity].toLowerCase()}: ${d.message}`),
  );
  return lines.slice(0, 200).join("\n") || "There are none.";
}

async function reveal({ path, line = 1 }: Place): Promise<string> {
  const range = new vscode.Range(line - 1, 0, line - 1, 0);
  await vscode.window.showTextDocument(fileOf(path), { selection: range, preserveFocus: true, viewColumn: vscode.ViewColumn.Beside });
  return `${path} is shown.`;
}

async function applyEdit({ path, old, new: text }: Edit): Promise<string> {
  const uri = fileOf(path);
  const document = await vscode.workspace.openTextDocument(uri);
  const at = document.getText().indexOf(old);
  if (at < 0 || document.getText().includes(old, at + 1)) {
    throw new Error(at < 0 ? `${path} does not have that text` : `${path} has that text more than once`);
  }
  const edit = new vscode.WorkspaceEdit();
  const range = new vscode.Range(document.positionAt(at), document.positionAt(at + old.length));
  edit.replace(uri, range, text, { needsConfirmation: true, label: "An agent wants to change this" });
  const before = document.version;
  if (!(await vscode.workspace.applyEdit(edit)) || document.version === before) {
    throw new Error("the person did not want the change");
  }
  await document.save();
  return `${path} is changed.`;
}

async function runTask({ name }: { name?: string }): Promise<string> {
  const tasks = await vscode.tasks.fetchTasks();
  const task = tasks.find((one) => one.name === name);
  if (name === undefined) {
    return tasks.map((one) => `${one.name} (${one.source})`).join("\n") || "There are none.";
  }
  if (!task) {
    throw new Error(`there is no task ${name}`);
  }
  const execution = await vscode.tasks.executeTask(task);
  return new Promise((resolve) => {
    const listening = vscode.tasks.onDidEndTaskProcess((end) => {
      if (end.execution === execution) {
        listening.dispose();
        resolve(`${name} ended with code ${end.exitCode}.`);
      }
    });
  });
}
