import * as vscode from "vscode";
import type { Chats } from "../chat/chats";
import type { Commands } from "../commands";
import { messageOf, type Daemon } from "../daemon/daemon";
import type { Method, Params, Result } from "../daemon/link";
import { defaultEntries } from "../model/models";
import type { Provider } from "../model/providers";
import type { ModelInfo } from "../protocol";
import { logIn } from "./login";
import { askAddress, askKey, chooseProvider, title } from "./steps";

/** SetupContext is the part of the extension that the set-up of providers uses. */
export interface SetupContext {
  /** the daemon of the window: that of the demo during the demo */
  daemon: Daemon;
  /** a new connection to the daemon of the user */
  connect(): Daemon;
  chats: Chats;
  inDemo(): boolean;
  /** opens config.toml */
  openConfig(): Promise<void>;
}

/** onlyLocal, in place of the name of a provider, limits the choice to servers on this machine. */
const onlyLocal = "@local";

/**
 * Setup stores the API keys of providers. It passes a key to the daemon of the user and keeps it nowhere. It also sets the context
 * lashd.noModel, which selects the text of an empty list of sessions.
 */
export class Setup {
  private known?: boolean; // whether there is a model

  constructor(private readonly context: SetupContext) {}

  get commands(): Commands {
    return {
      setUpProvider: (name?: string) => this.run(name),
      removeKey: () => this.pickRemoval(),
      testModel: () => this.testModel(),
    };
  }

  /** update finds out whether there is a model. With missing, it does so only if there was none. */
  async update(missing = false): Promise<void> {
    const { daemon } = this.context;
    if (daemon.state.kind !== "ready" || (missing && this.known !== false)) {
      return;
    }
    this.known = (await daemon.call("model/list", {})).data.length > 0;
    await vscode.commands.executeCommand("setContext", "lashd.noModel", !this.known);
  }

  /** localModels returns the models of servers that run on this machine. */
  async localModels(): Promise<Provider[]> {
    return (await this.providers()).filter((p) => p.local && p.models?.length);
  }

  private async run(name?: string) {
    const [all, models] = await Promise.all([this.providers(), this.models()]);
    const ready = new Set(models.map(({ model }) => model.provider));
    const named = all.find((p) => p.name === name && p.pasted);
    const choice = named ? { provider: named } : await chooseProvider(name === onlyLocal ? all.filter((p) => p.local) : all, ready);
    if (!choice) {
      return;
    }
    if ("other" in choice) {
      return this.context.openConfig();
    }
    const { provider } = choice;
    if ("remove" in choice && choice.remove) {
      return this.remove(provider);
    }
    if (provider.local) {
      return this.useLocal(provider);
    }
    if (provider.login) {
      return this.logIn(provider);
    }
    return provider.pasted ? this.enterKey(provider) : this.context.openConfig();
  }

  private async logIn(provider: Provider) {
    if (await logIn(provider, (method, params, token) => this.call(method, params, token))) {
      await this.done(provider, `You are logged in to ${provider.title}.`);
    }
  }

  private async enterKey(provider: Provider) {
    const address = provider.baseUrlForm ? await askAddress(provider) : undefined;
    if (provider.baseUrlForm && address === undefined) {
      return;
    }
    const moved = address !== undefined && address !== provider.baseUrl;
    const stored = await askKey(provider, (key, untested, token) =>
      this.call("provider/setKey", { name: provider.name, key, untested, ...(moved && { baseUrl: address }) }, token));
    if (!stored) {
      return;
    }
    if (stored.restart) {
      await this.call("shutdown", { daemon: true }); // running turns continue after the restart
    }
    const [first] = stored.usedFirst ?? [];
    await this.done(provider, `${provider.title} is set up.${first ? ` The key from ${first} still counts before the stored one.` : ""}`);
  }

  private async useLocal(provider: Provider) {
    const { title: name, baseUrl = "", models = [] } = provider;
    if (models.length === 0) {
      void vscode.window.showInformationMessage(`lashd: ${name} does not run at ${baseUrl}. Start it, load a model, and run "${title}" again.`);
      return;
    }
    const model = await vscode.window.showQuickPick(models, { title: `${title}: ${name}`, placeHolder: "Model for new sessions" });
    if (model === undefined) {
      return;
    }
    await this.call("model/setDefault", { name: `${provider.name}/${model}` });
    await this.update();
    await this.offer(`New sessions use ${model} of ${name}.`, provider);
  }

  /** done lets the user choose a model of a provider that now works, and says how to go on. */
  private async done(provider: Provider, message: string) {
    await this.update();
    const entries = defaultEntries(await this.models(), provider.name);
    const picked = entries.length > 1 ? await vscode.window.showQuickPick(entries, { title: `${title}: ${provider.title}`, placeHolder: "Model for new sessions", ignoreFocusOut: true }) : undefined;
    if (picked?.name !== undefined) {
      await this.call("model/setDefault", { name: picked.name });
    }
    await this.offer(`${message}${picked?.name === undefined ? "" : ` New sessions use ${picked.label}.`}`, provider);
  }

  /** offer shows a success with what the user most likely wants next. */
  private async offer(message: string, { name }: Provider) {
    const [leave, choose, start] = ["Leave Demo", "Choose Model for This Chat", "New Session"];
    const chat = this.context.chats.active?.followed.view?.session;
    const buttons = this.context.inDemo() ? [leave] : chat && chat.config.model.provider !== name ? [choose, start] : [start];
    const picked = await vscode.window.showInformationMessage(`lashd: ${message}`, ...buttons);
    const command = picked && { [leave]: "endDemo", [choose]: "chooseModel", [start]: "newSession" }[picked];
    if (command) {
      await vscode.commands.executeCommand(`lashd.${command}`);
    }
  }

  private async pickRemoval() {
    const stored = (await this.providers()).filter((p) => p.stored);
    if (stored.length === 0) {
      void vscode.window.showInformationMessage("lashd: No key is stored. Keys in the environment and in config.toml are not lashd's to remove.");
      return;
    }
    const items = stored.map((provider) => ({ label: provider.title, description: provider.name, provider }));
    const picked = await vscode.window.showQuickPick(items, { title: "Remove API Key", placeHolder: "Provider whose key lashd deletes" });
    if (picked) {
      await this.remove(picked.provider);
    }
  }

  private async remove({ name, title: shown }: Provider) {
    const detail = "Sessions with its models fail until you set it up again. The key stays valid at the provider.";
    if ((await vscode.window.showWarningMessage(`Remove the key of ${shown}?`, { modal: true, detail }, "Remove")) !== "Remove") {
      return;
    }
    const { key } = await this.call("provider/removeKey", { name });
    await this.update();
    const rest = key ? ` The key from ${key} is still used.` : "";
    void vscode.window.showInformationMessage(`lashd: The key of ${shown} was removed.${rest}`);
  }

  /** testModel makes one small call to a model that the user chooses, and shows its reply or why there is none. */
  private async testModel() {
    const models = await this.models();
    const items = models.map(({ name, title: shown, default: preset }) => ({ label: shown ?? name, description: preset ? `${name} \u00b7 default` : name, name }));
    const picked = await vscode.window.showQuickPick(items, { title: "Test a Model", placeHolder: "lashd sends it two words" });
    if (!picked) {
      return;
    }
    const waiting = { location: vscode.ProgressLocation.Notification, title: `Waiting for the reply of ${picked.label}\u2026`, cancellable: true };
    try {
      const { text, durationMs } = await vscode.window.withProgress(waiting, (_, token) => this.call("model/test", { name: picked.name }, token));
      void vscode.window.showInformationMessage(`lashd: ${picked.label} replied in ${(durationMs / 1000).toFixed(1)} s: ${text.slice(0, 200) || "(no text)"}`);
    } catch (error) {
      void vscode.window.showErrorMessage(`lashd: ${messageOf(error)}`);
    }
  }

  private async providers(): Promise<Provider[]> {
    return (await this.call("provider/list", {})).data;
  }

  private async models(): Promise<ModelInfo[]> {
    return (await this.call("model/list", {})).data;
  }

  /** call sends a request to the daemon of the user: that of the window or, during the demo, another one. */
  private async call<M extends Method>(method: M, params: Params<M>, token?: vscode.CancellationToken): Promise<Result<M>> {
    if (!this.context.inDemo()) {
      return this.context.daemon.call(method, params, token);
    }
    const daemon = this.context.connect();
    daemon.start();
    try {
      return await daemon.call(method, params, token);
    } finally {
      daemon.close();
    }
  }
}

/** offerSetup shows an error that a missing model or key caused, with a button that leads to the set-up. */
export async function offerSetup(error: unknown): Promise<void> {
  const [set, demo] = ["Set Up a Provider\u2026", "Try Without a Model"];
  const picked = await vscode.window.showErrorMessage(`lashd: ${messageOf(error)}`, set, demo);
  if (picked) {
    await vscode.commands.executeCommand(picked === set ? "lashd.setUpProvider" : "lashd.demo");
  }
}
