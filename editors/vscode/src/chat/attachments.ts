import * as vscode from "vscode";
import { leadsOut } from "../model/folders";
import { fileProblem, typeOf } from "../model/files";
import type { Edited } from "./lastEditor";
import type { Attached, Contents, ToWebview } from "./messages";
import { selectedLines } from "../model/input";
import { openFolders } from "../openFolders";
import { workspaceFiles } from "./workspaceFiles";
import { labelText } from "../model/printable";

/** Larger texts are attached by name only; the agent can read them. */
const maxFileBytes = 64 * 1024;

/** Larger files are not read: no model takes them. */
const maxRead = 33 << 20;

/** attachmentOfSelection attaches the selection of an editor, or the whole file if nothing is selected. */
export function attachmentOfSelection({ document, selection }: Edited): Attached {
  const path = vscode.workspace.asRelativePath(document.uri);
  if (selection.isEmpty) {
    const text = document.getText();
    return { label: path, text: text.length > maxFileBytes ? "" : text };
  }
  return { label: `${path}:${selectedLines(selection)}`, text: document.getText(selection) };
}

/** attachmentOfFile returns the message that attaches a file: its text, the contents of an image or a document, or only its name. */
export async function attachmentOfFile(uri: vscode.Uri): Promise<ToWebview & { type: "attached" | "file" }> {
  const path = vscode.workspace.asRelativePath(uri);
  const { size, type } = await vscode.workspace.fs.stat(uri);
  if ((type & vscode.FileType.File) === 0) {
    throw new Error(`${path} is not a file`);
  }
  if (size > maxRead) {
    return { type: "attached", attached: { label: path, text: "" } };
  }
  const real = uri.scheme === "file" ? leadsOut(openFolders(), uri.fsPath) : undefined;
  if (real !== undefined) {
    throw new Error(`${path} is a link to ${real}, outside the open folders. To attach that file, browse for it.`);
  }
  const bytes = await vscode.workspace.fs.readFile(uri);
  const mediaType = typeOf(bytes);
  if (mediaType === "" || mediaType === "text/plain") {
    const text = mediaType === "" || size > maxFileBytes ? "" : new TextDecoder().decode(bytes);
    return { type: "attached", attached: { label: path, text } };
  }
  const name = path.split("/").at(-1) ?? path;
  const problem = fileProblem({ name, type: mediaType, size });
  if (problem !== "") {
    throw new Error(problem);
  }
  const file: Contents = { name, data: Buffer.from(bytes).toString("base64") };
  return { type: "file", file };
}

/** pickAttachments lets the user select files to attach: of the workspace, or any others in a dialog. */
export async function pickAttachments(): Promise<vscode.Uri[]> {
  const items = (await workspaceFiles()).map(({ path, uri }) => ({ label: labelText(path), uri }));
  return new Promise((resolve) => {
    const browse: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon("folder-opened"), tooltip: "Browse for other files, such as images" };
    const pick = Object.assign(vscode.window.createQuickPick<{ label: string; uri: vscode.Uri }>(), {
      items, buttons: [browse], canSelectMany: true, title: "Attach Files", placeholder: "Select files of the workspace, or browse for others",
    });
    pick.onDidTriggerButton(() => {
      resolve(Promise.resolve(vscode.window.showOpenDialog({ canSelectMany: true, openLabel: "Attach" })).then((chosen) => chosen ?? []));
      pick.hide();
    });
    pick.onDidAccept(() => {
      resolve(pick.selectedItems.map(({ uri }) => uri));
      pick.hide();
    });
    pick.onDidHide(() => {
      resolve([]);
      pick.dispose();
    });
    pick.show();
  });
}
