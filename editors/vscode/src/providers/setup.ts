import * as vscode from "vscode";
import type { Chats } from "../chat/chats";
import type { Commands } from "../commands";
import { runCommand } from "../daemon/command";
import { messageOf, type Daemon } from "../daemon/daemon";
import type { Program } from "../daemon/link";
import type { Provider } from "../model/providers";
import { lash } from "../program";
import type { ModelInfo } from "../protocol";
import type { Sessions } from "../sessions";
import { askAddress, askKey, chooseProvider, title } from "./steps";

/** SetupContext is the part of the extension that the set-up of providers uses. */
export interface SetupContext {
  /** the lashd of the user, also during the demo */
  program(): Program;
  daemon: Daemon;
  sessions: Sessions;
  chats: Chats;
  inDemo(): boolean;
  /** opens config.toml */
  openConfig(): Promise<void>;
}

/** onlyLocal, in place of the name of a provider, limits the choice to servers on this machine. */
const onlyLocal = "@local";

/**
 * Setup stores the API keys of providers. It passes a key to "lash login" on stdin and keeps it nowhere. It also sets the context
 * lashd.noModel, which selects the text of an empty list of sessions.
 */
export class Setup {
  private known?: boolean; // whether there is a model

  constructor(private readonly context: SetupContext) {}

  get commands(): Commands {
    return {
      setUpProvider: (name?: string) => this.run(name),
      removeKey: () => this.pickRemoval(),
    };
  }

  /** update finds out whether there is a model. With missing, it does so only if there was none. */
  async update(missing = false): Promise<void> {
    if (this.context.daemon.state.kind !== "ready" || (missing && this.known !== false)) {
      return;
    }
    this.known = (await this.models()).length > 0;
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

  /** logIn runs "lash login" in a terminal, which shows the address of the login and takes the answer. */
  private logIn({ name, title: shown }: Provider) {
    const { command, env } = lash(this.context.program());
    vscode.window.createTerminal({ name: `Log in to ${shown}`, shellPath: command, shellArgs: ["login", name], env: { LASHD_HOME: env.LASHD_HOME } }).show();
  }

  private async enterKey(provider: Provider) {
    const address = provider.baseUrlForm ? await askAddress(provider) : undefined;
    if (provider.baseUrlForm && address === undefined) {
      return;
    }
    const moved = address !== undefined && address !== provider.baseUrl;
    const args = ["login", provider.name, ...(moved ? [`--base-url=${address}`] : [])];
    const stored = await askKey(provider, async (key) => void (await this.lash(args, `${key}\n`)));
    if (!stored) {
      return;
    }
    if (moved) {
      await this.restart();
    }
    await this.update();
    const other = provider.key && provider.key !== "stored" ? ` The key from ${provider.key} still counts before the stored one.` : "";
    await this.offer(`${provider.title} is set up.${other}`, provider);
  }

  /** restart restarts the daemon, which reads the address of a provider only at its start. Running turns continue after it. */
  private async restart() {
    const { daemon } = this.context;
    if (daemon.state.kind === "ready") {
      await daemon.call("shutdown", { daemon: true });
    }
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
    await this.lash(["model", "use", `${provider.name}/${model}`]);
    await this.update();
    await this.offer(`New sessions use ${model} of ${name}.`, provider);
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

  private async remove({ name, title: shown, key }: Provider) {
    const detail = "Sessions with its models fail until you set it up again. The key stays valid at the provider.";
    if ((await vscode.window.showWarningMessage(`Remove the key of ${shown}?`, { modal: true, detail }, "Remove")) !== "Remove") {
      return;
    }
    await this.lash(["logout", name]);
    await this.update();
    const rest = key && key !== "stored" ? ` The key from ${key} is still used.` : "";
    void vscode.window.showInformationMessage(`lashd: The key of ${shown} was removed.${rest}`);
  }

  private async providers(): Promise<Provider[]> {
    return JSON.parse(await this.lash(["model", "providers", "--json"])) as Provider[];
  }

  /** models returns the models of the daemon; none if it is not connected. */
  private async models(): Promise<ModelInfo[]> {
    const { daemon } = this.context;
    return daemon.state.kind === "ready" ? (await daemon.call("model/list", {})).data : [];
  }

  private lash(args: string[], input?: string): Promise<string> {
    return runCommand(lash(this.context.program()), args, input);
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
