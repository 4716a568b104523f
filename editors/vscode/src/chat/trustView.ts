import * as vscode from "vscode";

/**
 * TrustView provides the view in the side bar from the start of a window, because VS Code leaves a view empty that appears later. Until the
 * user trusts the folder, it says so; then another provider takes over.
 */
export class TrustView implements vscode.WebviewViewProvider {
  private view?: vscode.WebviewView;
  private provider?: vscode.WebviewViewProvider;

  /** trusted hands the view over. */
  trusted(provider: vscode.WebviewViewProvider): void {
    this.provider = provider;
    if (this.view) {
      void provider.resolveWebviewView(this.view, { state: undefined }, new vscode.CancellationTokenSource().token);
    }
  }

  resolveWebviewView(view: vscode.WebviewView, context: vscode.WebviewViewResolveContext, token: vscode.CancellationToken): void {
    if (this.provider) {
      return void this.provider.resolveWebviewView(view, context, token);
    }
    this.view = view;
    view.onDidDispose(() => (this.view = undefined));
    view.webview.options = { enableCommandUris: ["workbench.trust.manage"] };
    view.webview.html = `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="default-src 'none'"><title>lashd</title></head><body><p>Trust this folder to use lashd. Its agents run commands here.</p><p><a href="command:workbench.trust.manage">Manage Workspace Trust</a></p></body></html>`;
  }
}
