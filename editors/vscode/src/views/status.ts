import * as vscode from "vscode";
import type { State } from "../daemon/daemon";
import { counted } from "../model/sessions";
import type { Sessions } from "../sessions";

/** StatusItem shows the state of the connection in the status bar. */
export class StatusItem {
  private readonly item = vscode.window.createStatusBarItem("lashd.status", vscode.StatusBarAlignment.Left, 10);

  constructor() {
    this.item.name = "lashd";
    this.item.command = "lashd.status";
    this.item.show();
  }

  show(state: State, sessions: Sessions, demo: boolean): void {
    const { text, tooltip, warn } = statusOf(state, sessions);
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

function statusOf(state: State, { list, decisions }: Sessions): StatusText {
  if (state.kind === "failed") {
    return { text: "$(error) lashd", tooltip: state.reason, warn: true };
  }
  if (state.kind !== "ready") {
    return { text: "$(loading~spin) lashd", tooltip: "Connecting to the lashd daemon" };
  }
  if (decisions.length > 0) {
    return { text: `$(question) lashd: ${decisions.length}`, tooltip: counted(decisions.length, "open question"), warn: true };
  }
  const running = [...list.values()].filter((session) => session.state === "running").length;
  const busy = running > 0;
  return { text: busy ? `$(sync~spin) lashd: ${running}` : "$(check) lashd", tooltip: `lashd ${state.server.serverInfo.version ?? ""}: ${counted(running, "running session")}` };
}
