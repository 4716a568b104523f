import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import * as vscode from "vscode";
import schema from "../../../../cmd/lashd/cli/config.schema.json";
import { messageOf, type Daemon } from "../daemon/daemon";
import type { Program } from "../daemon/link";
import { describe, offers } from "../model/toml";
import { configFile } from "../program";

/** How long it is waited for what comes next while a file is written. */
const settleMs = 300;
const patience = 10_000;

interface Problem {
  line: number;
  column?: number;
  message: string;
}

/** ConfigFile helps to write the config.toml of the data directory: what may be there is offered and explained, and what is wrong is underlined. */
export class ConfigFile implements vscode.CompletionItemProvider, vscode.HoverProvider {
  private readonly found = vscode.languages.createDiagnosticCollection("lashd config");
  private readonly closing: vscode.Disposable;
  private timer?: NodeJS.Timeout;

  /** program is the lashd that checks the file. None has to run for that. */
  constructor(private readonly program: () => Program, private readonly daemon: Daemon, private readonly log: vscode.LogOutputChannel) {
    const all = { scheme: "file", pattern: "**/config.toml" };
    this.closing = vscode.Disposable.from(
      this.found,
      vscode.languages.registerCompletionItemProvider(all, this, "[", "=", ".", '"'),
      vscode.languages.registerHoverProvider(all, this),
      vscode.workspace.onDidOpenTextDocument((document) => this.look(document)),
      vscode.workspace.onDidChangeTextDocument(({ document }) => this.look(document)),
      vscode.workspace.onDidSaveTextDocument((document) => this.saved(document).catch((error) => this.log.warn(`saving config.toml: ${messageOf(error)}`))),
      vscode.workspace.onDidCloseTextDocument((document) => this.found.delete(document.uri)),
    );
    vscode.workspace.textDocuments.forEach((document) => this.look(document));
  }

  /** open opens the file, which is made if there is none. */
  async open(): Promise<void> {
    const file = configFile(this.program().env);
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(file, "", { mode: 0o600, flag: "a" });
    await vscode.window.showTextDocument(vscode.Uri.file(file));
  }

  provideCompletionItems(document: vscode.TextDocument, at: vscode.Position): vscode.CompletionItem[] {
    const text = document.getText();
    const end = document.lineAt(at).range.end;
    const written = /(?:^\s*|=\s*)(\S*)$/.exec(document.lineAt(at).text.slice(0, at.character))?.[1] ?? "";
    const range = new vscode.Range(at.translate(0, -written.length), /^[\]"]*$/.test(document.getText(new vscode.Range(at, end))) ? end : at);
    const all = this.is(document) ? offers(schema, text.slice(0, document.offsetAt(at)), text.slice(document.offsetAt(end) + 1)) : [];
    return all.map((offer, place) => {
      const item = new vscode.CompletionItem(offer.label, vscode.CompletionItemKind.Property);
      item.documentation = offer.description;
      item.insertText = new vscode.SnippetString(offer.insert);
      item.range = range;
      item.filterText = offer.label;
      item.sortText = String(place).padStart(3, "0");
      return item;
    });
  }

  provideHover(document: vscode.TextDocument, at: vscode.Position): vscode.Hover | undefined {
    const text = this.is(document) ? describe(schema, document.getText(new vscode.Range(new vscode.Position(0, 0), document.lineAt(at).range.end))) : undefined;
    return text ? new vscode.Hover(text) : undefined;
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.closing.dispose();
  }

  private is(document: vscode.TextDocument): boolean {
    try {
      return document.uri.scheme === "file" && document.uri.path.endsWith("/config.toml") && document.uri.fsPath === configFile(this.program().env);
    } catch {
      return false; // there is no lashd
    }
  }

  private look(document: vscode.TextDocument) {
    if (this.is(document)) {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => void this.check(document), settleMs);
    }
  }

  /** shows what is wrong, unless the file has changed meanwhile, and tells whether all is well */
  private async check(document: vscode.TextDocument): Promise<boolean> {
    const { version } = document;
    const problems = await this.problems(document.getText());
    if (problems && document.version === version && !document.isClosed) {
      this.found.set(document.uri, problems.map((problem) => diagnosticOf(document, problem)));
    }
    return problems?.length === 0;
  }

  private problems(text: string): Promise<Problem[] | undefined> {
    const { command, env } = this.program();
    return new Promise((resolve) => {
      const child = execFile(command, ["config", "-", "--json"], { env, timeout: patience }, (error, out) => {
        try {
          resolve((JSON.parse(out) as { problems: Problem[] }).problems);
        } catch {
          this.log.warn(`cannot check config.toml: ${error?.message}`);
          resolve(undefined);
        }
      });
      child.stdin?.on("error", () => undefined); // it has ended, which is told above
      child.stdin?.end(text);
    });
  }

  private async saved(document: vscode.TextDocument) {
    if (!this.is(document) || !(await this.check(document)) || this.daemon.state.kind !== "ready") {
      return;
    }
    const restart = "Restart Daemon";
    if ((await vscode.window.showInformationMessage("lashd: config.toml changed. Restart the daemon to apply it.", restart)) === restart) {
      await this.daemon.call("shutdown", { daemon: true });
    }
  }
}

function diagnosticOf(document: vscode.TextDocument, { line, column, message }: Problem): vscode.Diagnostic {
  const whole = document.lineAt(Math.min(line, document.lineCount) - 1).range;
  const range = column === undefined ? whole : whole.with(whole.start.translate(0, Math.min(column - 1, whole.end.character)));
  const diagnostic = new vscode.Diagnostic(range, message);
  diagnostic.source = "lashd";
  return diagnostic;
}
