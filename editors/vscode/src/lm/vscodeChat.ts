import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import type { Sessions } from "../sessions";
import { registerParticipant } from "./participant";
import { registerTools } from "./tools";

/** VSCodeChat registers lashd in VS Code's own chat while the setting lashd.vscodeChat is on. */
export class VSCodeChat {
  private registered?: vscode.Disposable;
  private readonly listening = vscode.workspace.onDidChangeConfiguration((e) => e.affectsConfiguration("lashd.vscodeChat") && this.update());

  constructor(private readonly daemon: Daemon, private readonly sessions: Sessions) {
    this.update();
  }

  dispose(): void {
    this.listening.dispose();
    this.registered?.dispose();
  }

  private update() {
    const on = vscode.workspace.getConfiguration("lashd").get("vscodeChat", false);
    if (on === (this.registered === undefined)) {
      this.registered?.dispose();
      this.registered = on ? vscode.Disposable.from(registerTools(this.daemon, this.sessions), registerParticipant(this.daemon, this.sessions)) : undefined;
    }
  }
}
