import { execFile } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import * as vscode from "vscode";
import schema from "../../../../cmd/internal/config/config.schema.json";
import { messageOf, type Daemon } from "../daemon/daemon";
import type { Program } from "../daemon/link";
import { describe, suggestions } from "../model/toml";
import { configFile } from "../program";

/** How long the user must stop typing before the file is checked. */
const typingPauseMs = 300;
const checkTimeoutMs = 10_000;

/** example is a new config.toml. */
const example = `# Settings of lashd. Press Ctrl+Space on an empty line for all keys. For example, a model server:
#
# [providers.work]
# base_url = "https://HOST/v1"
`;

interface Problem {
  line: number;
  column?: number;
  message: string;
}

/** ConfigFile provides completion, hovers and diagnostics for the config.toml in the data directory. */
export class ConfigFile implements vscode.CompletionItemProvider, vscode.HoverProvider {
  private readonly diagnostics = vscode.languages.createDiagnosticCollection("lash config");
  private readonly closing: vscode.Disposable;
  private readonly changes = new vscode.EventEmitter<void>();
  /** fires when restartNeeded changes */
  readonly onChange = this.changes.event;
  private outdated?: number; // process id of a daemon that has not read the file as it was last saved
  private timer?: NodeJS.Timeout;

  /** program returns the lashd that checks the file. The check needs no daemon. */
  constructor(private readonly program: () => Program, private readonly daemon: Daemon, private readonly log: vscode.LogOutputChannel) {
    const all = { scheme: "file", pattern: "**/config.toml" };
    this.closing = vscode.Disposable.from(
      this.diagnostics, this.changes,
      daemon.onState((state) => void (state.kind === "ready" && this.outdated !== undefined && this.compare().catch((error) => this.log.warn(messageOf(error))))),
      vscode.languages.registerCompletionItemProvider(all, this, "[", "=", ".", '"'),
      vscode.languages.registerHoverProvider(all, this),
      vscode.workspace.onDidOpenTextDocument((document) => this.scheduleCheck(document)),
      vscode.workspace.onDidChangeTextDocument(({ document }) => this.scheduleCheck(document)),
      vscode.workspace.onDidSaveTextDocument((document) => this.offerRestart(document).catch((error) => this.log.warn(`saving config.toml: ${messageOf(error)}`))),
      vscode.workspace.onDidCloseTextDocument((document) => this.diagnostics.delete(document.uri)),
    );
    vscode.workspace.textDocuments.forEach((document) => this.scheduleCheck(document));
  }

  /** restartNeeded reports whether the file was saved since the daemon started. */
  get restartNeeded(): boolean {
    return this.outdated !== undefined;
  }

  /** compare finds out whether the daemon is still the outdated one. */
  private async compare() {
    const { pid } = await this.daemon.call("server/status", {});
    this.outdated = pid === this.outdated ? pid : undefined;
    this.changes.fire();
  }

  /** open opens the file, and creates it with an example if it does not exist. */
  async open(): Promise<void> {
    const file = configFile(this.program().env);
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    if (!existsSync(file)) {
      writeFileSync(file, example, { mode: 0o600, flag: "a" });
    }
    await vscode.window.showTextDocument(vscode.Uri.file(file));
  }

  provideCompletionItems(document: vscode.TextDocument, at: vscode.Position): vscode.CompletionItem[] {
    const text = document.getText();
    const end = document.lineAt(at).range.end;
    const written = /(?:^\s*|=\s*)(\S*)$/.exec(document.lineAt(at).text.slice(0, at.character))?.[1] ?? "";
    const range = new vscode.Range(at.translate(0, -written.length), /^[\]"]*$/.test(document.getText(new vscode.Range(at, end))) ? end : at);
    const all = this.isConfigFile(document) ? suggestions(schema, text.slice(0, document.offsetAt(at)), text.slice(document.offsetAt(end) + 1)) : [];
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
    const text = this.isConfigFile(document) ? describe(schema, document.getText(new vscode.Range(new vscode.Position(0, 0), document.lineAt(at).range.end))) : undefined;
    return text ? new vscode.Hover(text) : undefined;
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.closing.dispose();
  }

  private isConfigFile(document: vscode.TextDocument): boolean {
    try {
      return document.uri.scheme === "file" && document.uri.path.endsWith("/config.toml") && document.uri.fsPath === configFile(this.program().env);
    } catch {
      return false; // lashd was not found
    }
  }

  private scheduleCheck(document: vscode.TextDocument) {
    if (this.isConfigFile(document)) {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => void this.check(document), typingPauseMs);
    }
  }

  /** check shows the problems of a document, unless it changed during the check. It reports whether there are none. */
  private async check(document: vscode.TextDocument): Promise<boolean> {
    const { version } = document;
    const problems = await this.problems(document.getText());
    if (problems && document.version === version && !document.isClosed) {
      this.diagnostics.set(document.uri, problems.map((problem) => diagnosticOf(document, problem)));
    }
    return problems?.length === 0;
  }

  private problems(text: string): Promise<Problem[] | undefined> {
    const { command, env } = this.program();
    return new Promise((resolve) => {
      const child = execFile(command, ["config", "-", "--json"], { env, timeout: checkTimeoutMs }, (error, out) => {
        try {
          resolve((JSON.parse(out) as { problems: Problem[] }).problems);
        } catch {
          this.log.warn(`cannot check config.toml: ${error?.message}`);
          resolve(undefined);
        }
      });
      child.stdin?.on("error", () => undefined); // the callback above reports the failure
      child.stdin?.end(text);
    });
  }

  private async offerRestart(document: vscode.TextDocument) {
    if (!this.isConfigFile(document) || !(await this.check(document))) {
      return;
    }
    if (this.daemon.state.kind !== "ready") {
      return this.daemon.start(); // the file may be why it cannot start
    }
    this.outdated = (await this.daemon.call("server/status", {})).pid;
    this.changes.fire();
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
