import * as vscode from "vscode";
import { previewSides } from "../chat/changes";
import type { Commands } from "../commands";
import { words } from "../decisionText";
import { headline } from "../model/approvals";
import { printable } from "../model/printable";
import { previewTitle, unshownText } from "../model/proposedChange";
import type { Decision, DecisionChoice } from "../protocol";
import type { Sessions } from "../sessions";
import type { Questions } from "./questions";
import { addressOf, tabs, uriOf } from "./tabs";
import { changeScheme, type Texts } from "./textDocuments";

/** Shown is an editor with a file that an open approval would change. */
interface Shown {
  decision: Decision;
  /** the list of open decisions had it */
  listed: boolean;
}

/**
 * ProposedChanges shows what open approvals would change in diff editors. Buttons in their titles allow or deny the whole call. An editor
 * closes when its decision is answered, wherever that happens; closing it answers nothing.
 */
export class ProposedChanges {
  private readonly shown = new Map<string, Shown>(); // by the address of the right side

  constructor(private readonly texts: Texts, private readonly sessions: Sessions, private readonly questions: Questions) {}

  readonly commands: Commands = {
    allowChange: (uri?: vscode.Uri) => this.respond(uri, "allowOnce"),
    denyChange: (uri?: vscode.Uri) => this.respond(uri, "reject"),
  };

  /** show opens one of the files that a decision would change. */
  async show(decision: Decision, file: number, cwd: string): Promise<void> {
    const preview = decision.detail?.files?.[file];
    if (preview) {
      const { name, before, after } = await previewSides(preview, cwd);
      const right = this.texts.add(name, after, changeScheme);
      this.shown.set(right.toString(), { decision, listed: false });
      await vscode.commands.executeCommand("vscode.diff", this.texts.add(name, before, changeScheme), right, printable(previewTitle(decision, file)));
    }
  }

  /** update closes the editors of decisions that are no longer open. A decision that the list does not have yet is still open. */
  async update(): Promise<void> {
    if (this.sessions.decisionsKnown) {
      const open = new Set(this.sessions.decisions.map(({ decisionId }) => decisionId));
      this.shown.forEach((one) => (one.listed ||= open.has(one.decision.decisionId)));
      await this.close(({ decision, listed }) => listed && !open.has(decision.decisionId));
    }
  }

  /** shows reports whether an editor in front shows a part of a decision, with its buttons. */
  shows(decision: Decision): boolean {
    return tabs().some((tab) => tab.isActive && this.shown.get(uriOf(tab)?.toString() ?? "")?.decision.decisionId === decision.decisionId);
  }

  private async respond(uri: vscode.Uri | undefined, choice: DecisionChoice) {
    const one = this.shown.get(addressOf(uri));
    if (!one) {
      throw new Error("This change is no longer proposed. Close the editor.");
    }
    if (choice !== "allowOnce" || (await confirmed(one.decision))) {
      await this.questions.answer(one.decision, choice);
      one.listed = true; // the daemon knows it, or its answer
      await this.update();
    }
  }

  private async close(over: (one: Shown) => boolean) {
    const closing = new Set([...this.shown].flatMap(([address, one]) => (over(one) ? [address] : [])));
    closing.forEach((address) => this.shown.delete(address));
    await vscode.window.tabGroups.close(tabs().filter((tab) => closing.has(uriOf(tab)?.toString() ?? "")));
  }
}

/** confirmed asks once more before a call that does more than an editor shows. */
async function confirmed(decision: Decision): Promise<boolean> {
  const detail = unshownText(decision);
  return detail === "" || (await vscode.window.showWarningMessage(printable(headline(decision)), { modal: true, detail: printable(detail) }, words.allowOnce)) === words.allowOnce;
}
