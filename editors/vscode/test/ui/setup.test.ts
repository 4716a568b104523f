import { strict as assert } from "node:assert";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ModelListResult, ProviderListResult } from "../../src/protocol";
import { patienceMs, until } from "./browser";
import { deviceCode, filesWith, firstRun, ModelServer } from "./modelServer";
import { script } from "./script";
import { Workbench } from "./workbench";

const key = "sk-canary-77d0c1e5aa";
const gatewayKey = "sk-gateway-1f44b0a9de";
const silent = "sk-silent-2b6f90d3c4";

describe("part13/vscode the set-up of providers", function () {
  this.timeout(3 * patienceMs);
  const code = new Workbench();
  const server = new ModelServer(key);
  const gateway = new ModelServer(gatewayKey, ["acme-large", "acme-small"]);
  let gatewayAt = "";
  const input = () => code.page.locator(".quick-input-widget:visible input.input");
  const message = (text: string) => code.page.locator(".quick-input-message", { hasText: text }).waitFor();
  const step = (text: string) => code.page.locator(".quick-input-title", { hasText: text }).waitFor();
  const toast = (text: string) => code.page.locator(".notification-toast", { hasText: text });
  const stored = (name: string) => code.call<ProviderListResult>("provider/list", {}).data.find((p) => p.name === name)?.stored ?? false;
  const config = () => readFileSync(join(code.home, "config.toml"), "utf8");
  const enter = async (text: string) => {
    await input().fill(text);
    await code.page.keyboard.press("Enter");
  };

  before(async () => {
    gatewayAt = await gateway.start();
    await code.start(script, { config: firstRun(await server.start()) });
  });
  beforeEach(() => code.run("Notifications: Clear All Notifications"));
  afterEach(async function () {
    await code.shot(`${this.currentTest?.state ?? "none"} ${this.currentTest?.title ?? ""}`);
    await code.page.keyboard.press("Escape"); // a step that a failed test left open
  });
  after(async () => {
    server.close();
    gateway.close();
    await code.close();
  });

  it("stores nothing if the user leaves during the test of a key", async () => {
    server.silentFor = silent;
    await code.run("lashd: Set Up a Provider...");
    await code.choose("Anthropic");
    await step("Anthropic, API key");
    await enter(silent);
    await message("Escape cancels it and stores nothing.");
    await code.page.keyboard.press("Escape");
    await until(() => server.abandoned > 0);
    assert.equal(stored("anthropic"), false);
    assert.deepEqual(filesWith(code.dir, silent), []);
  });

  it("stores a key without a test if nothing answers at the address", async () => {
    await code.run("lashd: Set Up a Provider...");
    await code.choose("Azure OpenAI");
    await step("Azure OpenAI, address");
    await enter("http://127.0.0.1:1/openai/v1");
    await step("Azure OpenAI, API key");
    await enter(key);
    await message("the key was not stored");
    assert.equal(config().includes("azure"), false);
    await code.page.locator(".quick-input-widget:visible").getByRole("button", { name: "Store the key without a test" }).click();
    await step("Azure OpenAI, model"); // the server lists none
    await code.page.keyboard.press("Escape");
    await toast("Azure OpenAI is set up, but no model is chosen for new sessions.").waitFor();
    assert.match(config(), /\[providers\.azure\]\nbase_url = "http:\/\/127\.0\.0\.1:1\/openai\/v1"/);
    assert.equal(stored("azure"), true);
    assert.deepEqual(filesWith(code.dir, key), [join(code.home, "keys.json")]);
  });

  it("removes a key", async () => {
    await code.run("lashd: Remove an API Key...");
    await code.choose("Azure OpenAI");
    await code.dialog("Remove");
    await toast("The key of Azure OpenAI was removed.").waitFor();
    assert.deepEqual(filesWith(code.dir, key), []);
  });

  it("uses a model of a local server", async () => {
    await code.run("lashd: Set Up a Provider...");
    await code.choose("Ollama");
    await step("Set Up a Provider: Ollama");
    await code.choose("local-model");
    await toast("New sessions use local-model of Ollama.").waitFor();
    assert.match(config(), /^model = "ollama\/local-model"\n/);
  });

  it("asks for the model of new sessions after it has stored a key, and keeps the present one if the user wants", async () => {
    await code.run("lashd: Set Up a Provider...");
    await code.choose("Anthropic");
    await step("Anthropic, API key");
    await enter(key);
    await step("Set Up a Provider: Anthropic");
    await code.page.locator(".quick-input-list .monaco-list-row", { hasText: "Keep local-model" }).waitFor();
    await code.shot("models");
    await code.choose("Keep local-model");
    await toast("Anthropic is set up.").waitFor();
    assert.match(config(), /^model = "ollama\/local-model"\n/);
    assert.deepEqual(server.leaks, []);
  });

  it("tests a model, and says why it does not work", async () => {
    const [, second] = code.call<ModelListResult>("model/list", {}).data;
    await code.run("lashd: Test a Model...");
    await code.choose(second?.name ?? "");
    await toast("With a key of your own.").waitFor();
    await toast("Waiting for the reply").waitFor({ state: "detached" }); // VS Code shows no fourth notification in 0.8 seconds
    await code.run("lashd: Test a Model...");
    await code.choose("ollama/local-model");
    await toast("this key is not valid").waitFor(); // the server takes no request without a key
  });

  it("logs in to ChatGPT with a code", async () => {
    await code.run("lashd: Set Up a Provider...");
    await code.choose("ChatGPT");
    await code.choose("Log in with a code");
    assert.match(await code.dialog("Open the Page"), new RegExp(`Enter the code ${deviceCode}`));
    await step("Set Up a Provider: ChatGPT");
    await code.choose("Keep local-model");
    await toast("You are logged in to ChatGPT.").waitFor();
    assert.equal(stored("chatgpt"), true);
    assert.deepEqual(filesWith(code.dir, "renews-a-login"), [join(code.home, "keys.json")]);
  });

  it("logs in to ChatGPT with the browser", async () => {
    await code.run("lashd: Set Up a Provider...");
    await code.choose("ChatGPT");
    const popup = code.page.context().waitForEvent("page");
    await code.choose("Log in with the browser");
    const page = await popup;
    await page.waitForURL(/\/oauth\/authorize/);
    const state = new URL(page.url()).searchParams.get("state") ?? "";
    await page.close();
    await step("ChatGPT, address after the login");
    await enter("http://example.com/");
    await message("The address begins with http://localhost:1455/auth/callback");
    await enter("http://localhost:1455/auth/callback?code=c&state=another");
    await message("belongs to another login");
    await enter(`http://localhost:1455/auth/callback?code=c&state=${state}`);
    await step("Set Up a Provider: ChatGPT");
    await code.choose("Keep local-model");
    await toast("You are logged in to ChatGPT.").waitFor();
  });

  it("stores a key for the daemon of the user during the demo", async () => {
    await code.run("lashd: Remove an API Key...");
    await code.choose("Anthropic");
    await code.dialog("Remove");
    await toast("The key of Anthropic was removed.").waitFor();
    await code.run("lashd: Try lashd Without a Model");
    await code.chat.locator("#composer textarea").waitFor();
    await code.run("lashd: Set Up a Provider...");
    await code.choose("Anthropic");
    await step("Anthropic, API key");
    await enter(key);
    await step("Set Up a Provider: Anthropic");
    await code.choose("Keep local-model");
    await toast("Anthropic is set up.").getByRole("button", { name: "Leave Demo" }).click();
    await until(() => stored("anthropic"));
    assert.deepEqual(filesWith(code.dir, key), [join(code.home, "keys.json")]);
  });

  it("adds another server with its address and key, and uses one of the models that it lists", async () => {
    await code.run("lashd: Set Up a Provider...");
    await code.page.locator(".quick-input-list .monaco-list-row", { hasText: "Another server" }).waitFor();
    await code.page.keyboard.type("compatible"); // as other extensions name it
    await code.choose("Another server");
    await step("another server, address (1/3)");
    await enter(gatewayAt);
    await step("another server, name (2/3)");
    assert.equal(await code.quickInput.inputValue(), "local");
    await enter("vllm");
    await message("vllm is the name of another provider.");
    await enter("acme");
    await step("acme, API key (3/3)");
    await code.page.keyboard.press("Enter");
    await message("This server wants a key.");
    await enter("sk-wrong");
    await message("acme rejected the key (HTTP 401): this key is not valid. lashd did not store it; check the key and enter it again");
    assert.equal(config().includes("acme"), false);
    await enter(gatewayKey);
    await step("Set Up a Provider: acme");
    await code.page.locator(".quick-input-list .monaco-list-row", { hasText: "acme-small" }).waitFor();
    await code.shot("acme");
    await code.choose("acme-large");
    await toast("acme is set up. New sessions use acme-large of acme.").getByRole("button", { name: "New Session" }).click();
    await code.say("hi");
    await code.chat.locator(".agentMessage", { hasText: "With a key of your own." }).waitFor();
    await code.run("lashd: Choose Model...");
    const rows = code.page.locator(".quick-input-list .monaco-list-row");
    await rows.filter({ hasText: "acme-small" }).waitFor(); // only the server knows it
    assert.match(await code.page.locator(".quick-input-list .monaco-list-row.focused").innerText(), /acme-large/);
    await code.shot("model-menu");
    await code.choose("acme-small");
    await code.chat.getByRole("button", { name: "acme-small" }).waitFor();
    assert.match(config(), new RegExp(`^model = "acme/acme-large"\n(.|\n)*\\[providers.acme\\]\nbase_url = "${gatewayAt}"`));
    assert.deepEqual(filesWith(code.dir, gatewayKey), [join(code.home, "keys.json")]);
  });

  it("uses a local server at another address, and asks for the key that it wants", async () => {
    await code.run("lashd: Set Up a Provider...");
    await code.page.locator(".quick-input-list .monaco-list-row", { hasText: "vLLM" }).filter({ hasText: "no answer at http://127.0.0.1:1/v1" }).waitFor();
    await code.choose("vLLM");
    await step("vLLM, address");
    await code.page.keyboard.press("Enter");
    await message("nothing answers at http://127.0.0.1:1/v1; start the server, or correct the address");
    await enter(gatewayAt);
    await step("vLLM, API key");
    await enter(gatewayKey);
    await step("Set Up a Provider: vLLM");
    await code.choose("acme-small");
    await toast("vLLM is set up. New sessions use acme-small of vLLM.").waitFor();
    assert.match(config(), /^model = "vllm\/acme-small"\n/);
  });

  it("says why lashd cannot start, and starts it once config.toml is mended", async () => {
    const good = config();
    code.write("home/config.toml", `modle = "x"\n${good}`);
    await code.run("lashd: Restart Daemon");
    await code.view();
    await code.page.locator(".part.sidebar .message", { hasText: 'unknown key "modle"; did you mean model?' }).waitFor();
    await code.status("error").waitFor();
    await code.shot("cannot-start");
    await code.run("lashd: New Session");
    await toast('unknown key "modle"; did you mean model?').waitFor();
    await code.page.locator(".part.sidebar .monaco-list-row", { hasText: "Open config.toml" }).waitFor();
    code.write("home/config.toml", good);
    await code.page.locator(".part.sidebar .monaco-list-row", { hasText: "Try again" }).click();
    await code.status("check").waitFor();
  });

  it("says that a provider has a key but no model, and lets the user choose one", async () => {
    code.write("home/config.toml", config().replace(/^model = .*\n/, ""));
    const others = code.call<ProviderListResult>("provider/list", {}).data.filter((p) => p.stored && p.name !== "acme");
    others.forEach(({ name }) => code.call("provider/removeKey", { name }));
    await code.run("lashd: Restart Daemon");
    await code.status("check").waitFor();
    await until(() => code.call<ModelListResult>("model/list", {}).data.length === 0);
    await code.run("lashd: New Session");
    await toast("acme has a key, but no model is chosen for new sessions.").getByRole("button", { name: "Choose a Model" }).click();
    await step("Set Up a Provider: acme");
    await code.choose("acme-small");
    await toast("New sessions use acme-small of acme.").waitFor();
  });
});
