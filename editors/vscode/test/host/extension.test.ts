import { strict as assert } from "node:assert";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { until } from "./until";

const work = () => vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";

describe("issue/6-1 the extension", () => {
  it("registers all its commands", async () => {
    const extension = vscode.extensions.getExtension("lash.lashd");
    assert.ok(extension);
    await extension.activate();
    const { contributes } = extension.packageJSON as { contributes: { commands: { command: string }[] } };
    const there = new Set(await vscode.commands.getCommands(true));
    assert.deepEqual(contributes.commands.map(({ command }) => command).filter((command) => !there.has(command)), []);
  });

  it("does not let a workspace choose the program", async () => {
    const config = vscode.workspace.getConfiguration("lashd");
    await assert.rejects(Promise.resolve(config.update("path", "/bin/false", vscode.ConfigurationTarget.Workspace)));
  });

  it("opens a chat", async () => {
    await until("connected", () => true);
    await vscode.commands.executeCommand("lashd.newSession");
    await until("there is a tab", () => vscode.window.tabGroups.all.some((group) => group.tabs.some((tab) => tab.input instanceof vscode.TabInputWebview)));
  });

  it("shows a plugin problem as a diagnostic at its line, until it is fixed", async () => {
    const dir = join(work(), ".agents", "plugins", "guard");
    const file = vscode.Uri.file(join(dir, "plugin.json"));
    const write = (slot: string) => writeFileSync(file.fsPath, JSON.stringify({ name: "guard", version: "1.0.0", lashd: { prompt: [{ [slot]: "guidance", content: "Be careful." }] } }, undefined, 2));
    mkdirSync(dir, { recursive: true });
    write("slott");
    await until("a diagnostic", () => vscode.languages.getDiagnostics(file).length > 0);
    const [, wrong] = vscode.languages.getDiagnostics(file);
    assert.deepEqual([wrong?.range.start.line, wrong?.severity], [6, vscode.DiagnosticSeverity.Error]);
    assert.match(wrong?.message ?? "", /did you mean "slot"/);
    write("slot");
    await until("no diagnostic", () => vscode.languages.getDiagnostics(file).length === 0);
    rmSync(join(work(), ".agents"), { recursive: true });
  });

  it("checks plugin.json before it is saved", async () => {
    const file = vscode.Uri.file(join(work(), ".agents", "plugins", "draft", "plugin.json"));
    const document = await vscode.workspace.openTextDocument(file.with({ scheme: "untitled" }));
    const editor = await vscode.window.showTextDocument(document);
    await vscode.languages.setTextDocumentLanguage(document, "json");
    await editor.edit((edit) => edit.insert(new vscode.Position(0, 0), '{"name": "draft", "version": 1}'));
    await until("a diagnostic of the schema", () => vscode.languages.getDiagnostics(document.uri).some((d) => d.range.start.character === 29));
  });
});
