import { strict as assert } from "node:assert";
import * as vscode from "vscode";
import { until } from "./until";

describe("issue/6-1 config.toml in the extension host", () => {
  let document: vscode.TextDocument;
  const write = async (text: string) => {
    const edit = new vscode.WorkspaceEdit();
    edit.replace(document.uri, new vscode.Range(0, 0, document.lineCount, 0), text);
    await vscode.workspace.applyEdit(edit);
  };
  const end = () => document.lineAt(document.lineCount - 1).range.end;
  const wrong = () => vscode.languages.getDiagnostics(document.uri).map((d) => [d.range.start.line, d.message.replace(/ \(.*/, "")]);
  const offered = async () => {
    const list = await vscode.commands.executeCommand<vscode.CompletionList>("vscode.executeCompletionItemProvider", document.uri, end());
    return list.items.map(({ label }) => (typeof label === "string" ? label : label.label));
  };

  before(async () => {
    await vscode.commands.executeCommand("lashd.openConfig");
    document = vscode.window.activeTextEditor?.document ?? assert.fail("no editor");
  });
  after(() => vscode.commands.executeCommand("workbench.action.revertAndCloseActiveEditor"));

  it("is in the data directory", () => assert.match(document.uri.fsPath, /home.config\.toml$/));

  it("is completed from the schema", async () => {
    await write("sandbox = ");
    assert.deepEqual((await offered()).filter((label) => label.startsWith('"')), ['"readOnly"', '"workspace"', '"fullAccess"']);
    await write("[undo]\noff = false\n");
    const keys = await offered();
    assert.deepEqual([keys.includes("budget_mib"), keys.includes("off"), keys.includes("model"), keys.includes("[[models]]"), keys.includes("[providers.NAME]")], [true, false, false, true, true]);
    await write("[providers.acme]\n");
    const ofServer = await offered();
    assert.deepEqual([ofServer.includes("base_url"), ofServer.includes("key")], [true, true]);
  });

  it("has descriptions", async () => {
    await write("trace = true\n");
    const hovers = await vscode.commands.executeCommand<vscode.Hover[]>("vscode.executeHoverProvider", document.uri, new vscode.Position(0, 2));
    assert.match(hovers.flatMap((hover) => hover.contents.map((content) => (typeof content === "string" ? content : content.value))).join(), /trace\.jsonl/);
  });

  it("has diagnostics during typing, until the problems are fixed", async () => {
    await write("trace = true\nmodle = 'x'\n[undo]\nfiles = -1\n");
    await until("two problems", () => wrong().length === 2);
    assert.deepEqual(wrong(), [[1, 'unknown key "modle"; did you mean model?'], [3, "undo.files is -1; it must be from 1 to 1000000, or 0"]]);
    await write("trace = true\nmodel = 'x'\n");
    await until("none", () => wrong().length === 0);
  });
});
