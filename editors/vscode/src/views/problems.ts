import { join } from "node:path";
import * as vscode from "vscode";
import { fileUri } from "../openFolders";
import type { PluginInfo, PluginProblem } from "../protocol";

/** Problems shows the problems of plugins as diagnostics in their files. */
export class Problems {
  private readonly diagnostics = vscode.languages.createDiagnosticCollection("lashd");

  /** show replaces all diagnostics. */
  show(plugins: PluginInfo[]): void {
    const byFile = new Map<string, vscode.Diagnostic[]>();
    for (const plugin of plugins) {
      for (const problem of plugin.problems ?? []) {
        const file = plugin.dir && join(plugin.dir, problem.file ?? "plugin.json");
        if (file) {
          byFile.set(file, [...(byFile.get(file) ?? []), diagnosticOf(plugin, problem)]);
        }
      }
    }
    this.diagnostics.clear();
    byFile.forEach((diagnostics, file) => this.diagnostics.set(fileUri("/", file), diagnostics));
  }

  dispose(): void {
    this.diagnostics.dispose();
  }
}

function diagnosticOf(plugin: PluginInfo, problem: PluginProblem): vscode.Diagnostic {
  const line = Math.max((problem.line ?? 1) - 1, 0);
  const column = Math.max((problem.column ?? 1) - 1, 0);
  const range = new vscode.Range(line, column, line, problem.column ? column + 1 : Number.MAX_SAFE_INTEGER);
  const severity = problem.warning ? vscode.DiagnosticSeverity.Warning : vscode.DiagnosticSeverity.Error;
  const diagnostic = new vscode.Diagnostic(range, problem.message, severity);
  diagnostic.source = `lash plugin ${plugin.name}`;
  return diagnostic;
}
