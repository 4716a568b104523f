import { strict as assert } from "node:assert";
import { join } from "node:path";
import type { DebugPromptResult, DecisionListResult, SessionListResult, SessionReadResult, StatusResult } from "../../src/protocol";
import { patienceMs, pastePicture, until } from "./browser";
import { filesWith, firstRun, ModelServer } from "./modelServer";
import { diffLines } from "./diffEditor";
import { script, story } from "./script";
import { Workbench } from "./workbench";

const key = "sk-canary-4f1b7c2e9d";

describe("issue/6-1 a real VS Code", function () {
  this.timeout(3 * patienceMs);
  this.retries(1); // a browser, an editor and a daemon compete for the CPU
  const code = new Workbench();

  const server = new ModelServer(key);
  const input = () => code.page.locator(".quick-input-widget:visible input.input");

  before(async () => code.start(script, { config: firstRun(await server.start()) }));
  afterEach(async function () {
    await code.shot(`${this.currentTest?.state ?? "none"} ${this.currentTest?.title ?? ""}`);
  });
  after(async () => {
    server.close();
    await code.close();
  });

  it("issue/18 says the three ways to a model, and stores a key that works", async function () {
    this.retries(0); // only a first run shows the three ways
    await code.view();
    await code.page.locator(".welcome-view-content", { hasText: "lashd has no model yet." }).waitFor();
    await code.shot("welcome");
    await code.page.locator(".welcome-view-content").getByRole("button", { name: "Set Up a Provider..." }).click();
    await code.page.locator(".quick-input-list .monaco-list-row", { hasText: "Ollama" }).filter({ hasText: "runs at http://127.0.0.1" }).waitFor();
    await code.shot("providers");
    await code.choose("Anthropic");
    await code.page.locator(".quick-input-title", { hasText: "Anthropic, API key" }).waitFor();
    assert.equal(await input().getAttribute("type"), "password");
    await code.shot("key");
    await input().fill("sk-wrong");
    await code.page.keyboard.press("Enter");
    await code.page.locator(".quick-input-message", { hasText: "this key is not valid" }).waitFor();
    await code.shot("refused");
    await input().fill(key);
    await code.page.keyboard.press("Enter");
    await code.page.locator(".quick-input-title", { hasText: "Set Up a Provider: Anthropic" }).waitFor();
    await code.choose("anthropic/");
    const toast = code.page.locator(".notification-toast", { hasText: "Anthropic is set up." });
    await toast.waitFor();
    await code.shot("stored");
    await toast.getByRole("button", { name: "New Session" }).click();
    await code.say("hi");
    await code.chat.locator(".agentMessage", { hasText: "With a key of your own." }).waitFor();
    assert.deepEqual(server.leaks, []);
    assert.deepEqual(filesWith(code.dir, key), [join(code.home, "keys.json")]);
  });

  it("issue/18 offers the set-up when a turn fails because the key is gone", async () => {
    await code.run("lashd: Remove an API Key...");
    await code.choose("Anthropic");
    await code.dialog("Remove");
    await until(() => filesWith(code.home, key).length === 0);
    await code.say("again");
    const row = code.chat.locator(".row.end.failed", { hasText: "no API key for" });
    await row.getByRole("button", { name: "Set up a provider\u2026" }).click();
    await code.page.locator(".quick-input-title", { hasText: "Anthropic, API key" }).waitFor();
    await code.shot("missing");
    await code.page.keyboard.press("Escape");
    await code.useScript();
  });

  it("starts a session from the view", async () => {
    await code.view();
    await code.page.getByRole("button", { name: "New Session" }).last().click();
    await code.say("hi");
    await code.chat.locator(".agentMessage", { hasText: "Hello!" }).waitFor();
    await code.page.getByRole("treeitem", { name: /^hi/ }).first().waitFor();
  });

  it("issue/19 starts a session with code cells, says so, and runs one", async () => {
    await code.run("lashd: New Session with Driver...");
    await code.page.locator(".quick-input-list .monaco-list-row", { hasText: "Tool calls" }).filter({ hasText: "standard \u00b7 default" }).waitFor();
    await code.page.locator(".quick-input-list .monaco-list-row", { hasText: "The model writes small programs that call the tools" }).waitFor();
    await code.shot("drivers");
    await code.choose("Code cells");
    await code.say("look in code");
    await code.chat.locator(".agentMessage", { hasText: "I have run a cell." }).waitFor();
    assert.equal(await code.chat.locator("#composer .driver").innerText(), "Code cells");
    const [session] = code.call<SessionListResult>("session/list", {}).data;
    const { data } = code.call<SessionReadResult>("session/read", { sessionId: session?.sessionId });
    const cells = data.map(({ cell }) => cell?.printed).filter(Boolean);
    assert.equal(session?.config.driver, "rlm");
    assert.match(cells.join(), /A WORKSPACE/);
  });

  it("streams a turn, and asks before a file is written", async () => {
    await code.newSession();
    await code.say("write it");
    await code.chat.locator(".agentMessage strong", { hasText: "it" }).waitFor();
    await code.chat.locator("#asked .card").getByRole("button", { name: "Allow once" }).click();
    await code.chat.locator(".agentMessage", { hasText: "Written." }).waitFor();
    assert.equal(await code.chat.locator("#asked .card").count(), 0);
    await code.chat.getByRole("button", { name: "Open diff" }).click();
    assert.deepEqual(await diffLines(code.page, "x"), { before: [], after: ["x", "y"] });
  });

  it("removes a question that another client answered, even while the chat is hidden", async () => {
    await code.newSession();
    await code.say("write it");
    await code.chat.locator("#asked .card").waitFor();
    await code.run("lashd: New Session");
    const toast = code.page.locator(".notification-toast", { hasText: "new.txt" });
    await toast.waitFor();
    const { data } = code.call<DecisionListResult>("decision/list", {});
    const [decision] = data;
    assert.ok(decision);
    code.call("decision/respond", { decisionId: decision.decisionId, choice: "allowOnce", argsHash: decision.argsHash });
    await toast.waitFor({ state: "detached" });
    await code.status("check").waitFor();
  });

  it("continues a streaming reply after the daemon is killed", async () => {
    await code.newSession();
    await code.say("tell a story");
    await code.chat.locator(".agentMessage", { hasText: "promised" }).waitFor();
    process.kill(code.call<StatusResult>("server/status", {}).pid, "SIGKILL");
    await code.chat.locator(".agentMessage:not(.live)", { hasText: "finished the story." }).waitFor();
    assert.deepEqual(await code.chat.locator(".row .text, .row .markdown").allInnerTexts(), ["tell a story", story]);
  });

  it("issue/18 refuses a picture for a model that takes none, and shows it and the context after another model got it", async () => {
    await code.newSession();
    const send = code.chat.getByRole("button", { name: "Send" });
    const choose = async (model: string) => {
      await code.chat.getByRole("button", { name: /^Model: / }).click();
      await code.page.locator(".quick-input-list .monaco-list-row", { hasText: "20k tokens \u00b7 $2 in, $10 out per million" }).waitFor();
      await code.choose(model);
      await code.chat.getByRole("button", { name: `Model: ${model}` }).waitFor();
    };
    await choose("careful");
    await pastePicture(code.chat.locator("#composer textarea"), "shot.png");
    await code.chat.locator(".problem", { hasText: "The model careful takes no images. Choose another model, or remove shot.png." }).waitFor();
    assert.equal(await send.isDisabled(), true);
    await choose("scripted");
    await code.say("hi, what is this?");
    await code.chat.locator(".agentMessage", { hasText: "Hello!" }).waitFor();
    await until(() => code.chat.locator("img.picture").evaluate((picture: HTMLImageElement) => picture.naturalWidth === 120));
    const meter = code.chat.getByTitle("Context: 1.6k of 20k tokens, 8% full");
    await meter.waitFor();
    await code.run("View: Close All Editors");
    await code.page.getByRole("treeitem", { name: /^hi, what is this/ }).first().click();
    await meter.click();
    await until(async () => (await code.chat.locator("#context th").allInnerTexts()).join() === "System prompt,Tools,History,Attachments");
    assert.match(await code.chat.locator("#context tr", { hasText: "Tools" }).innerText(), /[\d.]+k tokens\s+\d+ tools/);
  });

  it("leaves an unchecked tool out of the next request", async () => {
    await code.newSession();
    const [sessions, tools] = ["Sessions", "Plugins and Tools"].map((title) => code.page.locator(`.pane-header[aria-label="${title} Section"]`));
    await tools?.click();
    await sessions?.click(); // make room for all plugins
    const plugin = code.page.getByRole("treeitem", { name: /^Files/ });
    await plugin.locator(".monaco-tl-twistie").click();
    await code.page.getByRole("treeitem", { name: /^patch/ }).getByRole("checkbox").click();
    await plugin.filter({ hasText: "6 of 7" }).waitFor();
    await code.say("hi");
    await code.chat.locator(".agentMessage", { hasText: "Hello!" }).waitFor();
    const [session] = code.call<SessionListResult>("session/list", { limit: 1 }).data;
    const prompt = code.call<DebugPromptResult>("debug/prompt", { sessionId: session?.sessionId });
    const names = prompt.tools.map((tool) => tool.name);
    assert.deepEqual([names.includes("patch"), names.includes("edit")], [false, true]);
  });
});
