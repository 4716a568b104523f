import * as vscode from "vscode";
import type { Chats } from "../chat/chats";
import type { Commands } from "../commands";
import type { Daemon } from "../daemon/daemon";
import type { Method, Params, Result } from "../daemon/link";
import { defaultEntries } from "../model/models";
import type { Provider } from "../model/providers";
import type { ModelInfo } from "../protocol";
import { shownWhole } from "../toasts";
import { hasPage } from "../views/tabs";
import { logIn, type Call } from "./login";
import { addServer, chooseModel, moveServer, type Added } from "./servers";
import { askAddress, askKey, chooseProvider, chooseStored, title } from "./steps";
import { testModel } from "./testModel";

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
 * Setup stores the API keys of providers. It passes a key to the daemon of the user and keeps it nowhere. Its contexts lashd.noModel and
 * lashd.hasModel select the text of an empty list of sessions and complete a step of the walkthrough.
 */
export class Setup {
  private known?: boolean; // whether there is a model

  constructor(private readonly context: SetupContext) {}

  get commands(): Commands {
    return {
      setUpProvider: (name?: string) => this.run(name),
      removeKey: () => this.pickRemoval(),
      testModel: async () => testModel(await this.models(), this.request),
    };
  }

  /** update finds out whether there is a model. With missing, it does so only if there was none. */
  async update(missing = false): Promise<void> {
    const { daemon } = this.context;
    if (daemon.state.kind !== "ready" || (missing && this.known !== false)) {
      return;
    }
    this.known = (await daemon.call("model/list", {})).data.length > 0;
    this.showContexts();
  }

  /** showContexts sets the contexts. VS Code completes a step of a walkthrough only if its context becomes true after the walkthrough was opened. */
  showContexts(): void {
    const contexts = { noModel: this.known === false, hasModel: this.known === true && !this.context.inDemo() && hasPage() };
    Object.entries(contexts).forEach(([name, on]) => void vscode.commands.executeCommand("setContext", `lashd.${name}`, on));
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
      return this.added(await addServer(this.request, all.map((p) => p.name)));
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
    if (!named && provider.key !== undefined) {
      return this.change(provider);
    }
    return provider.pasted ? this.enterKey(provider) : this.context.openConfig();
  }

  /** change lets the user choose what to do with a provider that has a key. */
  private async change(provider: Provider) {
    const ways = [
      { label: "$(hubot) Choose the model of new sessions", run: () => this.done(provider, "") },
      { label: "$(key) Enter another key", run: () => (provider.pasted ? this.enterKey(provider) : this.context.openConfig()) },
    ];
    await (await vscode.window.showQuickPick(ways, { title: `${title}: ${provider.title}` }))?.run();
  }

  /** added goes on with a server that was added. */
  private async added(result: Added | undefined) {
    if (result?.restart) {
      await this.restart();
    }
    if (result) {
      await this.done(result.provider, `${result.provider.title} is set up.`);
    }
  }

  private async logIn(provider: Provider) {
    if (await logIn(provider, this.request)) {
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
    await (stored.restart && this.restart());
    const [first] = stored.usedFirst ?? [];
    await this.done(provider, `${provider.title} is set up.${first ? ` The key from ${first} still counts before the stored one.` : ""}`);
  }

  private async useLocal(provider: Provider) {
    if (provider.models?.length) {
      return this.done(provider, "");
    }
    return provider.keyWanted ? this.enterKey(provider) : this.added(await moveServer(provider, this.request));
  }

  /** done lets the user choose a model of a provider that now works, and says how to go on. */
  private async done(provider: Provider, message: string) {
    const chosen = await this.chooseDefault(provider);
    await this.update();
    if (chosen === undefined && this.known === false) {
      return this.offerChoice(provider);
    }
    const text = [message, chosen && `New sessions use ${chosen}.`].filter(Boolean).join(" ");
    await (text && this.offer(text, provider));
  }

  /** chooseDefault lets the user choose the model of new sessions: among those that lashd knows, or those that the server lists. It returns its name for people. */
  private async chooseDefault(provider: Provider): Promise<string | undefined> {
    const models = await this.models();
    if (!provider.local && models.some(({ model }) => model.provider === provider.name)) {
      return this.chooseKnown(provider, defaultEntries(models, provider.name));
    }
    const listed = provider.models ?? (await this.call("provider/models", { name: provider.name }).catch(() => ({ data: [] }))).data ?? [];
    const id = await chooseModel(provider, listed);
    if (id === undefined) {
      return undefined;
    }
    await this.setDefault(`${provider.name}/${id}`);
    return `${id} of ${provider.title}`;
  }

  private async chooseKnown(provider: Provider, entries: { label: string; name?: string }[]): Promise<string | undefined> {
    const picked = entries.length > 1 ? await vscode.window.showQuickPick(entries, { title: `${title}: ${provider.title}`, placeHolder: "Model for new sessions", ignoreFocusOut: true }) : undefined;
    if (picked?.name === undefined) {
      return undefined;
    }
    await this.setDefault(picked.name);
    return picked.label;
  }

  private async setDefault(name: string) {
    await ((await this.call("model/setDefault", { name })).restart && this.restart());
  }

  /** restart restarts the daemon. Running turns continue after it. */
  private restart(): Promise<unknown> {
    return this.call("shutdown", { daemon: true });
  }

  /** offerModel says why there is no model for a new session, and leads to one. */
  async offerModel(): Promise<void> {
    const [all, models] = await Promise.all([this.providers(), this.models()]);
    const keyed = all.find((p) => p.key !== undefined && !models.some(({ model }) => model.provider === p.name));
    if (keyed) {
      return this.offerChoice(keyed);
    }
    const [set, demo] = ["Set Up a Provider\u2026", "Try Without a Model"];
    const picked = await vscode.window.showErrorMessage("lashd: lashd has no model yet. Set up a provider, or try lashd with a scripted model.", set, demo);
    if (picked) {
      await vscode.commands.executeCommand(picked === set ? "lashd.setUpProvider" : "lashd.demo");
    }
  }

  /** offerChoice says that a provider works, but that no model is chosen. */
  private async offerChoice(provider: Provider) {
    const choose = "Choose a Model";
    const why = provider.key === undefined ? "is set up" : "has a key";
    const picked = await vscode.window.showWarningMessage(...shownWhole(`lashd: ${provider.title} ${why}, but no model is chosen for new sessions.`, choose));
    await (picked && this.done(provider, ""));
  }

  /** offer shows a success with what the user most likely wants next. */
  private async offer(message: string, { name }: Provider) {
    const [leave, choose, start] = ["Leave Demo", "Choose Model for This Chat", "New Session"];
    const chat = this.context.chats.active?.followed.view?.session;
    const buttons = this.context.inDemo() ? [leave] : chat && chat.config.model.provider !== name ? [choose, start] : [start];
    const picked = await vscode.window.showInformationMessage(...shownWhole(`lashd: ${message}`, ...buttons));
    const command = picked && { [leave]: "endDemo", [choose]: "chooseModel", [start]: "newSession" }[picked];
    if (command) {
      await vscode.commands.executeCommand(`lashd.${command}`);
    }
  }

  private async pickRemoval() {
    const stored = (await this.providers()).filter((p) => p.stored);
    if (!stored.length) {
      return void vscode.window.showInformationMessage("lashd: No key is stored. Keys in the environment and in config.toml are not lashd's to remove.", "Close");
    }
    const picked = await chooseStored(stored);
    await (picked && this.remove(picked));
  }

  private async remove({ name, title: shown }: Provider) {
    const detail = "Sessions with its models fail until you set it up again. The key stays valid at the provider.";
    if ((await vscode.window.showWarningMessage(`Remove the key of ${shown}?`, { modal: true, detail }, "Remove")) !== "Remove") {
      return;
    }
    const { key } = await this.call("provider/removeKey", { name });
    await this.update();
    const rest = key ? ` The key from ${key} is still used.` : "";
    void vscode.window.showInformationMessage(...shownWhole(`lashd: The key of ${shown} was removed.${rest}`));
  }

  private async providers(): Promise<Provider[]> {
    return (await this.call("provider/list", {})).data;
  }

  private async models(): Promise<ModelInfo[]> {
    return (await this.call("model/list", {})).data;
  }

  private readonly request: Call = (method, params, token) => this.call(method, params, token);

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
