import { strict as assert } from "node:assert";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { PluginListResult, PluginServer } from "../../src/protocol";
import { patienceMs, until } from "./browser";
import { titleButton } from "./diffEditor";
import { McpServer } from "./mcpServer";
import { filesWith } from "./modelServer";
import { chatIn } from "./parts";
import { script } from "./script";
import { Workbench } from "./workbench";

describe("part13/vscode MCP servers", function () {
  this.timeout(3 * patienceMs);
  const code = new Workbench();
  const server = new McpServer();
  let url = "";
  const row = (text: string) => code.page.locator(".quick-input-list .monaco-list-row", { hasText: text });
  const press = async (of: string, button: string) => {
    await row(of).hover();
    await row(of).getByRole("button", { name: button }).click();
  };
  const plugin = () => code.call<PluginListResult>("plugin/list", { cwd: code.work }).data.find(({ servers }) => servers?.some(({ name }) => name === "docs"));
  const docs = (): PluginServer | undefined => plugin()?.servers?.[0];

  before(async () => {
    url = await server.start();
    await code.start(script);
  });
  afterEach(async function () {
    await code.shot(`${this.currentTest?.state ?? "none"} ${this.currentTest?.title ?? ""}`);
    await code.page.keyboard.press("Escape");
  });
  after(async () => {
    server.close();
    await code.close();
  });

  it("adds a server to the folder, which starts after the user has approved it", async () => {
    await code.run("lashd: MCP Servers...");
    await code.choose("Add a server");
    for (const [asks, text] of [["docs", "docs"], ["npx -y docs-server", url]] as const) {
      await code.page.getByPlaceholder(asks, { exact: true }).fill(text);
      await code.page.keyboard.press("Enter");
    }
    await code.choose("This folder");
    await code.page.locator(".tab.active", { hasText: "work (to review)" }).waitFor();
    await code.page.locator(".monaco-editor .view-line", { hasText: "====.mcp.json".replace(".", "\u00a0.") }).waitFor();
    assert.deepEqual(JSON.parse(readFileSync(join(code.work, ".mcp.json"), "utf8")), { mcpServers: { docs: { type: "http", url } } });
    assert.equal(server.authorized, 0);
    await code.run("View: Close Editor"); // the user may not have decided yet
    await code.run("lashd: MCP Servers...");
    await row("docs").filter({ hasText: "not approved" }).click();
    await titleButton(code.page, "Trust These Files").click();
    await until(() => plugin()?.status === "loaded");
    await code.page.locator(".notification-toast", { hasText: "docs needs you to sign in." }).waitFor(); // no chat is open
    await code.newSession();
    await code.say("hi");
    await until(() => docs()?.login === "needed");
  });

  it("signs in with the browser", async () => {
    await code.run("lashd: MCP Servers...");
    await row("docs").filter({ hasText: "needs you to sign in" }).waitFor();
    await press("docs", "Sign in");
    const shown = await code.dialog("Open Browser");
    const host = new URL(url).host;
    assert.match(shown, new RegExp(`MCP server: ${host}\\s*Authorization server: http://${host}\\s*Login page: ${host}\\s*Tokens from: ${host}`));
    await code.chat.locator(".notice", { hasText: "You are signed in to docs." }).waitFor();
    await until(() => docs()?.login === "loggedIn" && docs()?.state === "ready");
    assert.ok(server.authorized > 0);
    assert.deepEqual(filesWith(code.dir, "refresh-of-mcp"), [join(code.home, "mcp-logins.json")]);
  });

  it("restarts a server, and shows its log", async () => {
    const before = server.begun;
    await code.run("lashd: MCP Servers...");
    await row("docs").filter({ hasText: "ready, signed in" }).waitFor();
    await press("docs", "Restart it");
    await until(() => server.begun > before);
    await row("docs").filter({ hasText: "ready, signed in" }).waitFor();
    await press("docs", "Show the log");
    await code.page.locator(".tab.active", { hasText: ".log" }).waitFor();
    await code.page.locator(".monaco-editor .view-line", { hasText: /^(The.log.is.empty\.|\d{4}-\d\d-\d\dT.*)$/ }).first().waitFor();
  });

  it("part13/6 shows the host of a page that a server requires, and opens the page if the user agrees", async () => {
    await code.newSession();
    await code.say("pay for docs");
    const card = code.chat.locator("#asked .card");
    await card.locator(".question", { hasText: "Call docs: Look it up?" }).waitFor(); // the title of the server
    assert.equal(await card.locator("summary").innerText(), "All arguments of mcp__docs__look");
    await code.chat.locator("#list .call", { hasText: "Call docs: Look it up" }).waitFor();
    await code.shot("mcp-title");
    await card.getByRole("button", { name: "Allow once" }).click();
    const page = card.locator(".page");
    await page.waitFor();
    const host = new URL(url).host;
    assert.equal(await page.innerText(), `http://${host}/bill?id=7`);
    assert.equal(await page.locator("b").innerText(), host);
    assert.match(await card.locator(".question").innerText(), /asks you to open a page of the host .*The server says: "Pay the bill\."/);
    assert.equal(server.visits, 0);
    await card.getByRole("button", { name: "Open the page" }).click();
    await until(() => server.visits === 1);
  });

  it("adds a server for all sessions, and says above the input of a chat in the side bar how it started", async () => {
    const answers = 'method === "initialize" ? { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "w", version: "1" } } : { tools: [{ name: "forecast", inputSchema: { type: "object" } }] }';
    code.write("weather.js", `require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
      const { id, method, params } = JSON.parse(line);
      id !== undefined && console.log(JSON.stringify({ jsonrpc: "2.0", id, result: ${answers} }));
    });`);
    await code.newSession();
    await code.run("lashd: Open Chat in Side Bar");
    const chat = await chatIn(code.page, "auxiliarybar");
    const add = async (name: string, line: string) => {
      await code.run("lashd: MCP Servers...");
      await code.choose("Add a server");
      for (const [asks, text] of [["docs", name], ["npx -y docs-server", line]] as const) {
        await code.page.getByPlaceholder(asks, { exact: true }).fill(text);
        await code.page.keyboard.press("Enter");
      }
      await code.page.locator(".quick-input-list .monaco-list-row.focused", { hasText: "This folder" }).waitFor();
      await code.choose("All of your sessions");
      await row(name).waitFor(); // the list of servers is back
      await code.page.keyboard.press("Escape");
    };
    await add("weather", `${process.execPath} ${join(code.dir, "weather.js")}`);
    await chat.locator(".notice", { hasText: "weather is ready, with 1 tool. Your sessions can use it from their next turn on." }).waitFor();
    await add("broken", `${process.execPath} ${join(code.dir, "absent.js")}`);
    await chat.locator(".notice", { hasText: /^broken failed/ }).getByRole("button", { name: "Show MCP Servers" }).waitFor();
    await code.shot("notice in the side bar");
    assert.equal(await code.page.locator(".notification-toast").count(), 0);
    await code.run("lashd: Open Chat in Editor Area");
  });

  it("opens the file of a server", async () => {
    await code.run("View: Close All Editors");
    await code.run("lashd: MCP Servers...");
    await press("docs", "Open its file");
    await code.page.locator(".tab.active", { hasText: ".mcp.json" }).waitFor();
  });

  it("signs out", async () => {
    await code.run("lashd: MCP Servers...");
    await press("docs", "Sign out");
    await until(() => docs()?.login !== "loggedIn");
    assert.deepEqual(filesWith(code.dir, "refresh-of-mcp"), []);
  });
});
