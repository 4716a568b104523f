import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import { defaultEffort, modelEntries } from "../model/models";
import { configInMode, modeOf, modes, sandboxes, sandboxOf, sandboxText, type Mode } from "../model/modes";
import type { Session } from "../protocol";
import { labelText } from "../model/printable";
import { chooseFrom } from "../views/menu";

type ModelItem = vscode.QuickPickItem & { name?: string; current?: boolean };

/** chooseModel lets the user choose the model of a session from the next turn on. Models that only their servers list follow while the menu is open. */
export async function chooseModel(daemon: Daemon, { sessionId, config }: Session): Promise<void> {
  const items = async (servers: boolean) => modelItems(modelEntries((await daemon.call("model/list", { servers })).data, config.model));
  const picked = await chooseFrom("Model from the next turn on", await items(false), items(true));
  if (picked?.name !== undefined) {
    await daemon.change("session/configure", { sessionId, model: picked.name });
  } else if (picked) {
    await vscode.commands.executeCommand("lashd.setUpProvider");
  }
}

function modelItems(groups: ReturnType<typeof modelEntries>): ModelItem[] {
  const items: ModelItem[] = groups.flatMap(({ provider, models }) => [
    { label: provider, kind: vscode.QuickPickItemKind.Separator },
    ...models.map(({ name, title, description, current }) => ({ label: labelText(title), description: labelText(description), name, current })),
  ]);
  return [...items, { label: "", kind: vscode.QuickPickItemKind.Separator }, { label: "$(key) Set up a provider\u2026" }];
}

/** chooseEffort lets the user choose how hard the model of a session thinks, from the next turn on. */
export async function chooseEffort(daemon: Daemon, { sessionId, config }: Session): Promise<void> {
  const { id, reasoning, effort = "" } = config.model;
  if (!reasoning) {
    throw new Error(`the reasoning effort of ${id} cannot be set`);
  }
  const items = ["", ...reasoning.efforts].filter((name) => name !== "" || !reasoning.mandatory || reasoning.default).map((name) => ({
    label: name || defaultEffort(reasoning),
    current: name === effort,
    effort: name,
  }));
  const picked = await chooseFrom(`Reasoning effort of ${id} from the next turn on`, items);
  if (picked) {
    await daemon.change("session/configure", { sessionId, effort: picked.effort });
  }
}

type ModeItem = vscode.QuickPickItem & { mode?: Mode; current?: boolean };

/** chooseMode lets the user choose what lashd asks about in a session, from the next turn on. */
export async function chooseMode(daemon: Daemon, session: Session): Promise<void> {
  const { sessionId, config } = session;
  const now = modeOf(config);
  const items: ModeItem[] = [
    ...modes.map((mode) => ({ label: mode.name, current: mode === now, detail: mode.about(sandboxOf(config)), mode })),
    { label: "", kind: vscode.QuickPickItemKind.Separator },
    { label: "$(lock) Choose the sandbox of commands\u2026", description: sandboxText(config) },
  ];
  const picked = await chooseFrom("What lashd asks about, from the next turn on", items);
  if (picked?.mode) {
    await daemon.change("session/configure", { sessionId, ...configInMode(config, picked.mode) });
  } else if (picked) {
    await chooseSandbox(daemon, session);
  }
}

/** chooseSandbox lets the user choose the sandbox of the commands of a session, from the next turn on. */
export async function chooseSandbox(daemon: Daemon, { sessionId, config }: Session): Promise<void> {
  const items = sandboxes.map(({ mode, name, about }) => ({ label: name, current: mode === sandboxOf(config), detail: about, sandbox: mode }));
  const picked = await chooseFrom("Sandbox of commands, from the next turn on", items);
  if (picked) {
    await daemon.change("session/configure", { sessionId, approval: { ...config.approval, sandbox: picked.sandbox } });
  }
}
