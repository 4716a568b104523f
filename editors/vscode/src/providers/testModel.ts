import * as vscode from "vscode";
import { messageOf } from "../daemon/daemon";
import type { ModelInfo } from "../protocol";
import { shownWhole } from "../toasts";
import type { Call } from "./login";

/** testModel makes one small call to a model that the user chooses, and shows its reply or why there is none. */
export async function testModel(models: ModelInfo[], call: Call): Promise<void> {
  const items = models.map(({ name, title: shown, default: preset }) => ({ label: shown ?? name, description: preset ? `${name} \u00b7 default` : name, name }));
  const picked = await vscode.window.showQuickPick(items, { title: "Test a Model", placeHolder: "lashd sends it two words" });
  if (!picked) {
    return;
  }
  const waiting = { location: vscode.ProgressLocation.Notification, title: `Waiting for the reply of ${picked.label}\u2026`, cancellable: true };
  try {
    const { text, durationMs } = await vscode.window.withProgress(waiting, (_, token) => call("model/test", { name: picked.name }, token));
    void vscode.window.showInformationMessage(...shownWhole(`lashd: ${picked.label} replied in ${(durationMs / 1000).toFixed(1)} s: ${text.slice(0, 200) || "(no text)"}`));
  } catch (error) {
    void vscode.window.showErrorMessage(...shownWhole(`lashd: ${messageOf(error)}`));
  }
}
