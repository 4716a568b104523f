import * as vscode from "vscode";
import type { State } from "../daemon/daemon";
import { counted } from "../model/sessions";
import type { Session } from "../protocol";

/** StatusItem shows the state of the connection in the status bar. */
export class StatusItem {
  private readonly item = vscode.window.createStatusBarItem("lashd.status", vscode.StatusBarAlignment.Left, 10);

  constructor() {
    this.item.name = "lashd";
    this.item.command = "lashd.status";
    this.item.show();
  }

  /** show shows the state of the connection, of the sessions of this window, and the number of their open questions. */
  show(state: State, sessions: Session[], open: number, demo: boolean): void {
    const { text, tooltip, warn } = statusOf(state, sessions, open);
    this.item.text = `${text}${demo ? " (demo)" : ""}`;
    this.item.tooltip = tooltip;
    this.item.backgroundColor = warn ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
  }

  dispose(): void {
    this.item.dispose();
  }
}

interface StatusText {
  text: string;
  tooltip: string;
  warn?: boolean;
}

function statusOf(state: State, sessions: Session[], open: number): StatusText {
  if (state.kind === "failed") {
    return { text: "$(error) lashd", tooltip: state.reason, warn: true };
  }
  if (state.kind !== "ready") {
    return { text: "$(loading~spin) lashd", tooltip: "Connecting to the lashd daemon" };
  }
  if (open > 0) {
    return { text: `$(question) lashd: ${open}`, tooltip: counted(open, "open question"), warn: true };
  }
  const running = sessions.filter((session) => session.state === "running").length;
  const busy = running > 0;
  return { text: busy ? `$(sync~spin) lashd: ${running}` : "$(check) lashd", tooltip: `lashd ${state.server.serverInfo.version ?? ""}: ${counted(running, "running session")}` };
}
