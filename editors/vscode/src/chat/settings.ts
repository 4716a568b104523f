import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import { defaultEffort, modelEntries } from "../model/models";
import { configInMode, modeOf, modes, sandboxes, sandboxOf, sandboxText, type Mode } from "../model/modes";
import type { Provider } from "../model/providers";
import type { Session } from "../protocol";
import { labelText } from "../model/printable";

type ModelItem = vscode.QuickPickItem & { name?: string };

/** chooseModel lets the user choose the model of a session from the next turn on. local returns the models of servers on this machine. */
export async function chooseModel(daemon: Daemon, { sessionId, config }: Session, local: () => Promise<Provider[]>): Promise<void> {
  const items = Promise.all([daemon.call("model/list", {}), local()]).then(([{ data }, servers]) => modelItems(modelEntries(data, servers, config.model)));
  const picked = await vscode.window.showQuickPick(items, { placeHolder: "Model from the next turn on", matchOnDescription: true, matchOnDetail: true });
  if (picked?.name !== undefined) {
    await daemon.change("session/configure", { sessionId, model: picked.name });
  } else if (picked) {
    await vscode.commands.executeCommand("lashd.setUpProvider");
  }
}

function modelItems(groups: ReturnType<typeof modelEntries>): ModelItem[] {
  const items: ModelItem[] = groups.flatMap(({ provider, models }) => [
    { label: provider, kind: vscode.QuickPickItemKind.Separator },
    ...models.map(({ name, title, description, current }) => ({ label: `$(${current ? "check" : "blank"}) ${labelText(title)}`, description: labelText(description), name })),
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
    label: `$(${name === effort ? "check" : "blank"}) ${name || defaultEffort(reasoning)}`,
    effort: name,
  }));
  const picked = await vscode.window.showQuickPick(items, { placeHolder: `Reasoning effort of ${id} from the next turn on` });
  if (picked) {
    await daemon.change("session/configure", { sessionId, effort: picked.effort });
  }
}

type ModeItem = vscode.QuickPickItem & { mode?: Mode };

/** chooseMode lets the user choose what lashd asks about in a session, from the next turn on. */
export async function chooseMode(daemon: Daemon, session: Session): Promise<void> {
  const { sessionId, config } = session;
  const now = modeOf(config);
  const items: ModeItem[] = [
    ...modes.map((mode) => ({ label: `$(${mode === now ? "check" : "blank"}) ${mode.name}`, detail: mode.about(sandboxOf(config)), mode })),
    { label: "", kind: vscode.QuickPickItemKind.Separator },
    { label: "$(lock) Choose the sandbox of commands\u2026", description: sandboxText(config) },
  ];
  const picked = await vscode.window.showQuickPick(items, { placeHolder: "What lashd asks about, from the next turn on" });
  if (picked?.mode) {
    await daemon.change("session/configure", { sessionId, ...configInMode(config, picked.mode) });
  } else if (picked) {
    await chooseSandbox(daemon, session);
  }
}

/** chooseSandbox lets the user choose the sandbox of the commands of a session, from the next turn on. */
export async function chooseSandbox(daemon: Daemon, { sessionId, config }: Session): Promise<void> {
  const items = sandboxes.map(({ mode, name, about }) => ({ label: `$(${mode === sandboxOf(config) ? "check" : "blank"}) ${name}`, detail: about, sandbox: mode }));
  const picked = await vscode.window.showQuickPick(items, { placeHolder: "Sandbox of commands, from the next turn on" });
  if (picked) {
    await daemon.change("session/configure", { sessionId, approval: { ...config.approval, sandbox: picked.sandbox } });
  }
}
