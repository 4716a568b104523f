import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { format } from "node:util";
import type { Browser, FrameLocator, Locator, Page } from "playwright-core";
import type { SessionListResult } from "../../src/protocol";
import { launch, need, patienceMs } from "./browser";
import { answers, codeServer } from "./codeServer";
import { freePort, withoutKeys } from "./machine";
import { models } from "./script";

/** Options change the defaults of a workbench. */
export interface Options {
  /** path of an extension with a bundled lashd; no other lashd is installed */
  bundle?: string;
  /** folders of the window */
  folders?: string[];
  /** additional user settings */
  settings?: object;
  /** config.toml, in place of the scripted model */
  config?: string;
  /** sessions have the mode that lashd chooses, not fullAccess */
  ownMode?: boolean;
  /** the user has not trusted the folder yet */
  restricted?: boolean;
}

/** Workbench is a real VS Code in a browser, with the installed extension and a lashd with a scripted model. */
export class Workbench {
  readonly dir = join(tmpdir(), `lashd-ui-${randomUUID().slice(0, 8)}`); // the first file in it makes it
  readonly work = join(this.dir, "work");
  readonly home = join(this.dir, "home");
  readonly config = join(this.dir, "config"); // XDG_CONFIG_HOME of the daemon
  private server?: ChildProcess;
  private browser?: Browser;
  private port = 0;
  private opened = "";
  page!: Page;

  /** start installs the extension into a new profile and opens a window. */
  async start(script: unknown, { bundle, folders = ["work"], settings = {}, config, ownMode = false, restricted = false }: Options = {}): Promise<void> {
    const trust = restricted && { "security.workspace.trust.enabled": true, "security.workspace.trust.startupPrompt": "never" };
    await this.prepare(script, bundle ? {} : { "lashd.path": need("LASHD") }, { ...settings, ...trust });
    if (config !== undefined || ownMode) {
      this.write("home/config.toml", config ?? this.scripted.replace(/^sandbox = .*\n/mu, ""));
    }
    const installed = spawnSync(...codeServer(this.dir, "--install-extension", bundle ?? need("VSIX")), { encoding: "utf8" });
    if (installed.status !== 0) {
      throw new Error(`install: ${installed.stdout}${installed.stderr}`);
    }
    folders.forEach((folder) => mkdirSync(join(this.dir, folder), { recursive: true }));
    this.write("several.code-workspace", JSON.stringify({ folders: folders.map((path) => ({ path })) }));
    this.opened = folders.length > 1 ? `workspace=${join(this.dir, "several.code-workspace")}` : `folder=${join(this.dir, folders[0] ?? "work")}`;
    await this.serve(...(restricted ? [] : ["--disable-workspace-trust"]));
    await this.load(restricted ? this.page.locator("#status\\.workspaceTrust") : undefined);
  }

  /** another opens a second window with the same folders and the same daemon. */
  async another(): Promise<Workbench> {
    const other = Object.assign(Object.create(this) as Workbench, { page: await this.newPage() });
    await other.load();
    return other;
  }

  /** runTests runs tests in the extension host with the extension in dir. It returns their exit code and output. */
  async runTests(script: unknown, dir: string, tests: string): Promise<{ code: number; said: string }> {
    await this.prepare(script);
    await this.serve("--disable-workspace-trust", "--vscode-option", "enable-smoke-test-driver");
    const said: string[] = [];
    await this.page.exposeFunction("codeAutomationLog", (_: string, args: unknown[]) => void said.push(format(...args)));
    const ended = new Promise<number>((resolve) => void this.page.exposeFunction("codeAutomationExit", resolve));
    const at = (path: string) => `vscode-remote://127.0.0.1:${this.port}${path}`;
    const payload = [["extensionDevelopmentPath", at(dir)], ["extensionTestsPath", at(tests)]];
    await this.page.goto(`http://127.0.0.1:${this.port}/?folder=${this.work}&payload=${encodeURIComponent(JSON.stringify(payload))}`);
    return { code: await ended, said: said.join("\n") };
  }

  private async prepare(script: unknown, machine: object = { "lashd.path": need("LASHD") }, user: object = {}) {
    this.write("home/script.json", JSON.stringify(script));
    this.write("home/config.toml", this.scripted);
    this.write("work/readme.txt", "a workspace\n");
    this.write("ud/Machine/settings.json", JSON.stringify({ ...machine, "lashd.home": this.home }));
    this.write("ud/User/settings.json", JSON.stringify({
      "workbench.startupEditor": "none", "workbench.secondarySideBar.defaultVisibility": "hidden", "telemetry.telemetryLevel": "off",
      "extensions.autoUpdate": false, "extensions.autoCheckUpdates": false, "chat.disableAIFeatures": true, "window.dialogStyle": "custom",
      "terminal.integrated.gpuAcceleration": "off", "security.workspace.trust.enabled": false,
      ...user,
    }));
    this.write("cfg.yaml", "auth: none\ncert: false\n");
    mkdirSync(join(this.dir, "ext"));
    this.port = await freePort();
  }

  private get scripted(): string {
    return `script = ${JSON.stringify(join(this.home, "script.json"))}\ntrace = true\nsandbox = "fullAccess"\n${models}`;
  }

  /** useScript restarts the daemon with the scripted model and without sessions. */
  async useScript(): Promise<void> {
    await this.run("View: Close All Editors");
    for (const { sessionId } of this.call<SessionListResult>("session/list", {}).data) {
      this.call("session/delete", { sessionId });
    }
    this.write("home/config.toml", this.scripted);
    this.call("shutdown", { daemon: true });
    await this.page.locator(".welcome-view-content", { hasText: "No sessions yet." }).waitFor();
  }

  private async serve(...more: string[]) {
    const [command, args] = codeServer(
      this.dir, "--auth", "none", "--bind-addr", `127.0.0.1:${this.port}`, "--disable-telemetry", "--disable-update-check",
      "--disable-getting-started-override", "--ignore-last-opened", "--reconnection-grace-time", "3", ...more,
    );
    const dirs = (process.env.PATH ?? "").split(delimiter).filter((dir) => !existsSync(join(dir, "lashd")));
    this.server = spawn(command, args, { stdio: "ignore", detached: true, env: { ...withoutKeys(), PATH: dirs.join(delimiter), LASHD_KEYRING: "off", XDG_CONFIG_HOME: this.config } });
    await answers(this.port);
    this.page = await this.newPage();
  }

  private async newPage(): Promise<Page> {
    this.browser ??= await launch();
    const page = await this.browser.newPage({ viewport: { width: 1280, height: 800 } });
    page.setDefaultTimeout(patienceMs);
    return page;
  }

  /** load opens or reloads the window, and waits until the extension is connected, or for another sign. */
  async load(sign = this.status("check")): Promise<void> {
    if (this.page.url().includes("http")) {
      await this.run("Developer: Reload Window");
    } else {
      await this.page.goto(`http://127.0.0.1:${this.port}/?${this.opened}`);
    }
    await this.page.locator(".monaco-workbench .activitybar").waitFor();
    await sign.waitFor();
  }

  /** status returns the status bar item while it shows an icon. */
  status(icon: string): Locator {
    return this.page.locator(`#lash\\.lashd\\.lashd\\.status .codicon-${icon}`);
  }

  /** view shows the side bar of lashd. */
  async view(): Promise<void> {
    const title = this.page.locator(".part.sidebar .title-label", { hasText: /lashd/i });
    await ((await title.isVisible()) ? undefined : this.page.locator('.activitybar .action-label[aria-label^="lashd"]').click());
    await title.waitFor();
  }

  /** run runs a command by its title. It tries twice, because a page that appears takes the focus from the list of commands. */
  async run(title: string): Promise<void> {
    await this.pick(title, patienceMs / 4).catch(() => this.pick(title, patienceMs));
  }

  private async pick(title: string, timeout: number) {
    await this.page.locator(".part.statusbar").click({ position: { x: 600, y: 5 } }); // take the focus from the webview
    await this.page.keyboard.press("F1");
    await this.quickInput.fill(`>${title}`, { timeout });
    const whole = new RegExp(`^${title.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`); // one title can begin another one
    await this.page.locator(".quick-input-list .monaco-list-row", { has: this.page.locator(".label-name", { hasText: whole }) }).first().click({ timeout });
  }

  /** newSession starts a session and waits for its chat. */
  async newSession(): Promise<void> {
    await this.view();
    await this.run("lashd: New Session");
    await this.chat.locator("#list .row").first().waitFor({ state: "detached" }); // the chat of the session before is hidden
    await this.chat.locator("#composer textarea").waitFor();
  }

  /** dialog answers the open modal dialog and returns its text. */
  async dialog(answer: string): Promise<string> {
    const dialog = this.page.locator(".monaco-dialog-box");
    const text = await dialog.innerText();
    await dialog.getByRole("button", { name: answer, exact: true }).click();
    return text;
  }

  /** menu selects an entry of a context menu. A menu ignores a mouse button that is released in its first 100 ms. */
  async menu(of: Locator, entry: string): Promise<void> {
    const choose = () => of.click({ button: "right" }).then(() => this.page.locator(".context-view .action-label", { hasText: entry }).first().click({ delay: 200, timeout: 5000 }));
    await choose().catch(choose); // a change of the list closes the menu
  }

  /** quickInput is the field of the open quick pick or input box. */
  get quickInput(): Locator {
    return this.page.locator(".quick-input-widget:visible input.input");
  }

  /** showFile opens a file with Quick Open and puts the caret into it. */
  async showFile(name: string): Promise<void> {
    await this.page.keyboard.press("Control+p");
    await this.quickInput.fill(name);
    await this.choose(name);
    await this.page.locator(".monaco-editor .view-line").first().click();
  }

  /** choose selects an entry of the open quick pick. */
  async choose(entry: string | RegExp): Promise<void> {
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: entry }).first().click();
  }

  /** chat returns the page of the active chat. */
  get chat(): FrameLocator {
    return this.page.frameLocator("iframe.webview.ready").last().frameLocator("iframe#active-frame");
  }

  /** say sends a message in the active chat, or in another one, once that can send. */
  async say(text: string, chat = this.chat): Promise<void> {
    const field = chat.locator("#composer textarea");
    await field.fill(text);
    await chat.locator("#composer button.first:enabled").waitFor(); // the page is connected
    await field.press("Enter");
  }

  /** call sends a request to the same daemon with lash call. */
  call<T>(method: string, params: unknown): T {
    return JSON.parse(this.lash("call", method, JSON.stringify(params))) as T;
  }

  /** lash runs lash in the folder of the window, with the same daemon, and returns its output. */
  lash(...args: string[]): string {
    const made = spawnSync(join(dirname(need("LASHD")), "lash"), args, { cwd: this.work, encoding: "utf8", env: { ...process.env, LASHD_HOME: this.home, XDG_CONFIG_HOME: this.config } });
    if (made.status !== 0) {
      throw new Error(`lash ${args.join(" ")}: ${made.stderr}`);
    }
    return made.stdout;
  }

  /** shot saves a screenshot in the directory SHOTS, if that is set. */
  async shot(name: string): Promise<void> {
    if (process.env.SHOTS) {
      await this.page.screenshot({ path: join(process.env.SHOTS, `${name.replaceAll(/[^a-z]+/gi, "-")}.png`) });
    }
  }

  async close(): Promise<void> {
    await this.browser?.close();
    if (this.server?.pid) {
      const ended = new Promise((resolve) => this.server?.once("close", resolve));
      process.kill(-this.server.pid, "SIGTERM");
      await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 5000))]);
    }
    try {
      this.call("shutdown", { daemon: true });
    } catch {
      // the daemon has ended already
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 20 }); // on a slow machine the daemon still writes here for some seconds
  }

  write(path: string, text: string): void {
    const file = join(this.dir, path);
    mkdirSync(join(file, ".."), { recursive: true, mode: 0o700 });
    writeFileSync(file, text);
  }
}
