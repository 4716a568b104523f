import * as vscode from "vscode";
import type { Texts } from "./textDocuments";
import { labelText } from "../model/printable";
import { addressOf, tabs, uriOf } from "./tabs";

/** Kind is what an editor asks: to trust the files of a plugin, or to apply an edit. The menus of the editor title know it by the scheme of the document. */
export type Kind = "lashd-trust" | "lashd-edit";

/** Choice is a text that the user accepts or rejects. */
export interface Choice {
  kind: Kind;
  /** the title of the editor */
  title: string;
  /** the name of the document, from which the editor takes the language */
  name: string;
  text: string;
  /** how to answer, for the status bar */
  hint?: string;
  /** what the text replaces; undefined opens the text alone */
  before?: string;
  /** aborted when the answer is no longer needed */
  signal?: AbortSignal;
}

interface Open {
  answer: (accepted: boolean) => void;
  title: string;
  /** its editor is open; only then does a missing editor mean that the user closed it */
  shown: boolean;
}

/**
 * Choices shows texts in editors whose title has buttons to accept and to reject. The question stays until it is answered: an editor that is
 * closed rejects, and the status bar leads back to a hidden one.
 */
export class Choices {
  private readonly open = new Map<string, Open>();
  private readonly item = vscode.window.createStatusBarItem("lashd.choices", vscode.StatusBarAlignment.Left);
  private readonly closing: vscode.Disposable;

  constructor(private readonly texts: Texts) {
    Object.assign(this.item, { name: "lashd: open reviews", command: "lashd.showChoice", tooltip: "Show what lashd asks you to accept or reject" });
    this.closing = vscode.Disposable.from(this.item, vscode.window.tabGroups.onDidChangeTabs(({ closed }) => closed.length > 0 && this.rejectClosed()));
  }

  /** ask shows a text and reports whether the user accepted it. It closes the editor afterwards. */
  async ask({ kind, title, name, text, hint, before, signal }: Choice): Promise<boolean> {
    const uri = this.texts.add(name, text, kind);
    const key = uri.toString();
    const answered = new Promise<boolean>((answer) => this.open.set(key, { answer, title: [title, hint].filter(Boolean).join(": "), shown: false }));
    const abort = () => this.answer(key, false);
    signal?.addEventListener("abort", abort);
    this.show();
    try {
      await showChoice(uri, title, before === undefined ? undefined : this.texts.add(name, before));
      this.setShown(key);
      if (signal?.aborted) {
        abort();
      }
      return await answered;
    } finally {
      signal?.removeEventListener("abort", abort);
      this.open.delete(key);
      this.show();
      await vscode.window.tabGroups.close(tabs().filter((tab) => uriOf(tab)?.toString() === key));
    }
  }

  /** respond answers for the editor of a document, or for the active editor. */
  respond(uri: vscode.Uri | undefined, accepted: boolean): void {
    const key = addressOf(uri);
    if (!this.open.has(key)) {
      throw new Error("This question is no longer open. Close the editor.");
    }
    this.answer(key, accepted);
  }

  /** reveal shows the oldest open question. */
  async reveal(): Promise<void> {
    const [key] = this.open.keys();
    const tab = tabs().find((one) => uriOf(one)?.toString() === key);
    if (tab) {
      await reopen(tab);
    }
  }

  dispose(): void {
    this.closing.dispose();
    [...this.open.keys()].forEach((key) => this.answer(key, false));
  }

  private answer(key: string, accepted: boolean) {
    this.open.get(key)?.answer(accepted);
  }

  private setShown(key: string) {
    const one = this.open.get(key);
    if (one) {
      one.shown = true;
    }
  }

  private rejectClosed() {
    const there = new Set(tabs().map((tab) => uriOf(tab)?.toString()));
    [...this.open].filter(([key, { shown }]) => shown && !there.has(key)).forEach(([key]) => this.answer(key, false));
  }

  private show() {
    const titles = [...this.open.values()].map(({ title }) => title);
    this.item.text = `$(diff) ${labelText(titles[0] ?? "")}${titles.length > 1 ? ` (+${titles.length - 1})` : ""}`;
    this.item[titles.length > 0 ? "show" : "hide"]();
    void vscode.commands.executeCommand("setContext", "lashd.choosing", titles.length > 0);
  }
}

/** showChoice opens a document, or its comparison with what it replaces, in an editor that no other file takes. */
async function showChoice(uri: vscode.Uri, title: string, before: vscode.Uri | undefined): Promise<void> {
  await (before ? vscode.commands.executeCommand("vscode.diff", before, uri, title, { preview: false }) : vscode.window.showTextDocument(uri, { preview: false }));
}

async function reopen({ input, label, group }: vscode.Tab): Promise<void> {
  const options = { viewColumn: group.viewColumn, preview: false };
  if (input instanceof vscode.TabInputTextDiff) {
    await vscode.commands.executeCommand("vscode.diff", input.original, input.modified, label, options);
  } else if (input instanceof vscode.TabInputText) {
    await vscode.window.showTextDocument(input.uri, options);
  }
}
