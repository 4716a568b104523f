import * as vscode from "vscode";
import type { State } from "../daemon/daemon";
import { statusOf } from "../model/status";
import type { Session } from "../protocol";

/** StatusItem shows the state of the connection in the status bar. */
export class StatusItem {
  private readonly item = vscode.window.createStatusBarItem("lashd.status", vscode.StatusBarAlignment.Left, 10);

  constructor() {
    this.item.name = "lashd";
    this.item.command = "lashd.status";
    this.item.show();
  }

  /** show shows the state of the connection, of the sessions of this window, the number of their open questions, and whether the daemon must restart. */
  show(state: State, sessions: Session[], open: number, { demo, restart }: { demo: boolean; restart: boolean }): void {
    const { text, tooltip, warn } = statusOf(state, sessions, open, restart);
    this.item.text = `${text}${demo ? " (demo)" : ""}`;
    this.item.tooltip = tooltip;
    this.item.backgroundColor = warn ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
  }

  dispose(): void {
    this.item.dispose();
  }
}
