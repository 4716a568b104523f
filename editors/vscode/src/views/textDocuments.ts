import * as vscode from "vscode";

const scheme = "lashd-text";

/** How many texts are kept for editors that may still show them. */
const mostKept = 100;

/** Texts are documents that are in no file. */
export class Texts implements vscode.TextDocumentContentProvider {
  private readonly texts = new Map<string, string>();
  private next = 1;

  register(): vscode.Disposable {
    return vscode.workspace.registerTextDocumentContentProvider(scheme, this);
  }

  /** add keeps a text under a name, of which editors take the language. */
  add(name: string, text: string): vscode.Uri {
    const query = String(this.next++);
    this.texts.set(query, text);
    for (const old of [...this.texts.keys()].slice(0, -mostKept)) {
      this.texts.delete(old);
    }
    return vscode.Uri.from({ scheme, path: `/${name}`, query });
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.query) ?? "This text is no longer available. Open it again.";
  }
}

/** showTexts opens a text, or the difference to the one before. */
export async function showTexts(texts: Texts, name: string, text: string, before?: string): Promise<void> {
  const uri = texts.add(name, text);
  if (before === undefined) {
    await vscode.window.showTextDocument(uri, { preview: true });
  } else {
    await vscode.commands.executeCommand("vscode.diff", texts.add(name, before), uri, name);
  }
}
