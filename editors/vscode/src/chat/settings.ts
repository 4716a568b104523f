import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import { configInMode, modeOf, modes } from "../model/modes";
import type { ModelInfo, Session } from "../protocol";

/** chooseModel lets the user choose the model of a session from the next turn on. */
export async function chooseModel(daemon: Daemon, { sessionId, config }: Session): Promise<void> {
  const { data } = await daemon.call("model/list", {});
  const items = data.map((info) => {
    const now = info.model.id === config.model.id && info.model.provider === config.model.provider;
    return { label: `$(${now ? "check" : "blank"}) ${info.name}`, description: describeModel(info), name: info.name };
  });
  const picked = await vscode.window.showQuickPick(items, { placeHolder: "Model from the next turn on", matchOnDescription: true });
  if (picked) {
    await daemon.change("session/configure", { sessionId, model: picked.name });
  }
}

function describeModel({ name, model, price, default: first }: ModelInfo): string {
  const said = [
    model.id === name ? "" : model.id,
    model.contextWindow ? `${Math.round(model.contextWindow / 1000)}k tokens` : "",
    price ? `$${price.input} in, $${price.output} out per million tokens` : "",
    first ? "default" : "",
  ];
  return said.filter(Boolean).join(" \u00b7 ");
}

/** chooseMode lets the user choose the approval mode of a session from the next turn on. */
export async function chooseMode(daemon: Daemon, { sessionId, config }: Session): Promise<void> {
  const now = modeOf(config);
  const items = modes.map((mode) => ({ label: `$(${mode === now ? "check" : "blank"}) ${mode.name}`, detail: mode.about, mode }));
  const picked = await vscode.window.showQuickPick(items, { placeHolder: "Approval mode from the next turn on" });
  if (picked) {
    await daemon.change("session/configure", { sessionId, ...configInMode(config, picked.mode) });
  }
}
