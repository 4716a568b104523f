import * as vscode from "vscode";
import { openPage } from "../chat/answers";
import { messageOf, type Daemon } from "../daemon/daemon";
import { titleOf } from "../model/sessions";
import { toastOf, toastTitle } from "../model/toast";
import type { Decision, DecisionChoice, DecisionID, SessionID } from "../protocol";
import type { Sessions } from "../sessions";
import { questionText, words } from "../decisionText";
import { shownWhole } from "../toasts";
import { labelText } from "../model/printable";

/**
 * Questions shows a notification for each open decision that no visible chat or editor shows. The notification closes when any client answers and
 * when the connection is lost.
 */
export class Questions {
  private readonly open = new Map<DecisionID, () => void>();

  /** visible reports whether the user sees a decision with its answers; here reports whether a session belongs to this window. */
  constructor(private readonly daemon: Daemon, private readonly sessions: Sessions, private readonly visible: (decision: Decision) => boolean, private readonly here: (id: SessionID) => boolean) {}

  /** decisions returns the open decisions of the sessions of this window. */
  get decisions(): Decision[] {
    return this.sessions.decisions.filter(({ sessionId }) => this.here(sessionId));
  }

  /** update shows missing notifications and closes those that are no longer needed. */
  update(): void {
    const hidden = this.decisions.filter((decision) => !this.visible(decision));
    const wanted = new Set(hidden.map((decision) => decision.decisionId));
    for (const [id, close] of this.open) {
      if (!wanted.has(id)) {
        close();
        this.open.delete(id);
      }
    }
    hidden.filter((decision) => !this.open.has(decision.decisionId)).forEach((decision) => this.show(decision));
  }

  /** answer answers a decision. If another client answered first, it reports that answer. */
  async answer(decision: Decision, choice: DecisionChoice, value?: unknown): Promise<void> {
    const argsHash = choice.startsWith("allow") && decision.argsHash ? { argsHash: decision.argsHash } : {};
    try {
      const params = { decisionId: decision.decisionId, choice, ...argsHash, ...(value !== undefined && { value }) };
      const r = await this.daemon.change("decision/respond", params);
      await openPage(decision, r);
      if (!r.won) {
        void vscode.window.showInformationMessage(...shownWhole(`lashd: ${r.answer.by} already answered: ${words[r.answer.choice]}`));
      }
    } catch (error) {
      void vscode.window.showErrorMessage(...shownWhole(`lashd: ${messageOf(error)}`));
    }
  }

  /** ask lets the user choose an open decision and answer it. */
  async ask(): Promise<void> {
    const items = this.decisions.map((decision) => ({ label: labelText(this.text(decision)), description: labelText(this.title(decision)), decision }));
    const picked = items.length === 1 ? items[0] : await vscode.window.showQuickPick(items, { placeHolder: "Open questions" });
    if (!picked) {
      return;
    }
    const answers = picked.decision.choices.map((choice) => ({ label: words[choice], choice }));
    const answer = await vscode.window.showQuickPick(answers, { placeHolder: this.text(picked.decision) });
    if (answer?.choice.startsWith("allow") && this.text(picked.decision).length > maxPick) {
      return void vscode.commands.executeCommand("lashd.openSession", picked.decision.sessionId); // the rest is only in the chat
    }
    const text = answer?.choice === "answer" ? await vscode.window.showInputBox({ prompt: this.text(picked.decision) }) : undefined;
    if (answer && (answer.choice !== "answer" || text !== undefined)) {
      await this.answer(picked.decision, answer.choice, text);
    }
  }

  close(): void {
    this.open.forEach((close) => close());
    this.open.clear();
  }

  // Only a progress notification can be closed by the extension. It has no buttons of its own, so the choices are links. VS Code shows all
  // lines of a notification only if it has a button: that of a progress that can be canceled, whose name can be a text.
  private show(decision: Decision) {
    const options = { location: vscode.ProgressLocation.Notification, title: `lashd: ${this.title(decision)}`, cancellable: "Dismiss" as unknown as boolean };
    const whole = !decision.detail?.files?.length;
    const offered = decision.choices.filter((choice) => (choice === "allowOnce" && whole) || choice === "reject");
    const links = offered.map((choice) => ({ label: words[choice], command: "lashd.answer", args: [decision.decisionId, choice], needsWhole: choice === "allowOnce" }));
    const message = toastOf(this.text(decision), [{ label: "Show", command: "lashd.openSession", args: [decision.sessionId] }, ...links]);
    // Noted here and not in the task: VS Code may start that later, after another update.
    const closed = new Promise<void>((resolve) => this.open.set(decision.decisionId, resolve));
    void vscode.window.withProgress(options, (progress, dismissed) => {
      progress.report({ message });
      dismissed.onCancellationRequested(() => this.open.get(decision.decisionId)?.());
      return closed;
    });
  }

  private text(decision: Decision): string {
    return questionText(decision, this.sessions.list.get(decision.sessionId));
  }

  private title(decision: Decision): string {
    const session = this.sessions.list.get(decision.sessionId);
    return session ? toastTitle(titleOf(session)) : decision.sessionId;
  }
}

/** The length of a question up to which a quick pick shows all of it. Only then can the call be allowed there. */
const maxPick = 300;
