import * as vscode from "vscode";

const scheme = "lashd-text";

/** changeScheme is the scheme of what an open approval would change, whose editor has the buttons that allow and deny it. */
export const changeScheme = "lashd-change";

/** textSchemes are the schemes of all texts. */
export const textSchemes = [scheme, changeScheme, "lashd-edit", "lashd-trust"];

/** The number of texts that are kept for open editors. */
const maxTexts = 100;

/** Texts provides read-only documents that have no file. */
export class Texts implements vscode.TextDocumentContentProvider {
  private readonly texts = new Map<string, string>();
  private next = 1;

  register(): vscode.Disposable {
    return vscode.Disposable.from(...textSchemes.map((of) => vscode.workspace.registerTextDocumentContentProvider(of, this)));
  }

  /** add stores a text and returns its URI. Editors take the language from the name. */
  add(name: string, text: string, of = scheme): vscode.Uri {
    const query = String(this.next++);
    this.texts.set(query, text);
    for (const oldest of [...this.texts.keys()].slice(0, -maxTexts)) {
      this.texts.delete(oldest);
    }
    return vscode.Uri.from({ scheme: of, path: `/${name}`, query });
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.query) ?? "This text is no longer available. Open it again.";
  }
}

/** showTexts opens a text, or a comparison with an earlier text. */
export async function showTexts(texts: Texts, name: string, text: string, before?: string): Promise<void> {
  const uri = texts.add(name, text);
  if (before === undefined) {
    await vscode.window.showTextDocument(uri, { preview: true });
  } else {
    await vscode.commands.executeCommand("vscode.diff", texts.add(name, before), uri, name);
  }
}
