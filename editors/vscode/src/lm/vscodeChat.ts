import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import type { Sessions } from "../sessions";
import { registerParticipant } from "./participant";
import { registerTools } from "./tools";

/** VSCodeChat is what lashd is in VS Code's own chat, as long as a setting says so. */
export class VSCodeChat {
  private registered?: vscode.Disposable;
  private readonly listening = vscode.workspace.onDidChangeConfiguration((e) => e.affectsConfiguration("lashd.vscodeChat") && this.look());

  constructor(private readonly daemon: Daemon, private readonly sessions: Sessions) {
    this.look();
  }

  dispose(): void {
    this.listening.dispose();
    this.registered?.dispose();
  }

  private look() {
    const on = vscode.workspace.getConfiguration("lashd").get("vscodeChat", false);
    if (on === (this.registered === undefined)) {
      this.registered?.dispose();
      this.registered = on ? vscode.Disposable.from(registerTools(this.daemon, this.sessions), registerParticipant(this.daemon, this.sessions)) : undefined;
    }
  }
}
