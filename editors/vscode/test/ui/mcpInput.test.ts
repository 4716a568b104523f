import { strict as assert } from "node:assert";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { PluginListResult } from "../../src/protocol";
import { until } from "./browser";
import { goals } from "./goals";
import { McpServer } from "./mcpServer";

/** A user adds a server for all sessions, uses its resources and prompts, and removes it. FLOWS=all runs them. */
describe("part13/6 an MCP server of the user in a real VS Code", function () {
  const code = goals(this, async () => {
    url = await server.start();
  });
  const server = new McpServer(false);
  const file = join(code.config, "lashd", "plugins", "mcp", ".mcp.json");
  let url = "";
  const option = (name: RegExp) => code.chat.getByRole("option", { name });
  const docs = () => code.call<PluginListResult>("plugin/list", {}).data.flatMap(({ servers = [] }) => servers).find(({ name }) => name === "docs");
  /** added returns the texts that plugins have added to the conversation. */
  const added = () => code.chat.locator(".row.addedText summary").allInnerTexts();

  after(() => server.close());

  it("is added for all sessions, without an approval, and is in the list at once", async () => {
    await code.run("lashd: MCP Servers...");
    await code.choose("Add a server");
    for (const [asks, text] of [["docs", "docs"], ["npx -y docs-server", url]] as const) {
      await code.page.getByPlaceholder(asks, { exact: true }).fill(text);
      await code.page.keyboard.press("Enter");
    }
    await code.choose("All of your sessions");
    await code.page.locator(".quick-input-list .monaco-list-row", { hasText: "docs" }).filter({ hasText: "ready" }).waitFor();
    assert.deepEqual(JSON.parse(readFileSync(file, "utf8")), { mcpServers: { docs: { type: "http", url } } });
    assert.equal(existsSync(join(code.work, ".mcp.json")), false);
    assert.equal(docs()?.state, "ready");
  });

  it("has resources that @ completes, and the model gets them", async () => {
    await code.newSession();
    await code.field.pressSequentially("what says @gui");
    await option(/^The guide/).click();
    assert.equal(await code.field.inputValue(), "what says @docs:doc://guide ");
    await code.chat.locator(".chip", { hasText: "docs: doc://guide" }).waitFor();
    await code.field.pressSequentially("and @docs:doc://books/e");
    await option(/^emma/).click();
    await code.chat.locator(".chip", { hasText: "docs: doc://books/emma" }).waitFor();
    await code.shot("resources of an MCP server");
    await code.field.press("Enter");
    await code.answered("Hello!");
    assert.deepEqual(await added(), ["The resource doc://guide of the MCP server docs (1 line)", "The resource doc://books/emma of the MCP server docs (1 line)"]);
    await code.chat.locator(".row.addedText summary").first().click();
    await code.chat.locator(".row.addedText", { hasText: "contents of doc://guide" }).waitFor();
  });

  it("has resources that a typed word names; a removed chip and an unknown word name none", async () => {
    await code.newSession();
    await code.field.fill("compare @docs:doc://changes, @docs:doc://guide and @docs:doc://unknown");
    await code.chat.locator(".chip", { hasText: "docs: doc://guide" }).waitFor();
    assert.equal(await code.chat.locator(".chip").count(), 2);
    await code.chat.getByRole("button", { name: "Remove @docs:doc://guide" }).click();
    assert.equal(await code.field.inputValue(), "compare @docs:doc://changes, and @docs:doc://unknown");
    await code.field.press("Enter");
    await code.answered("Hello!");
    assert.deepEqual(await added(), ["The resource doc://changes of the MCP server docs (1 line)"]);
    await code.chat.locator(".userMessage", { hasText: "@docs:doc://unknown" }).waitFor();
  });

  it("has a prompt as a command, whose arguments the server completes", async () => {
    await code.newSession();
    await code.field.pressSequentially("/mcp");
    await option(/^\/mcp__docs__review/).click();
    await option(/^src\/one\.txt/).waitFor();
    await code.field.pressSequentially("src/t");
    await option(/^src\/two\.txt/).click();
    await option(/^error handling focus \u00b7 what to look at/).waitFor();
    await code.shot("arguments of a prompt");
    await code.field.pressSequentially("err");
    await option(/^error handling/).waitFor();
    await code.field.press("Tab");
    assert.equal(await code.field.inputValue(), '/mcp__docs__review src/two.txt "error handling" ');
    await code.field.press("Enter");
    await code.answered("Hello!");
    assert.match((await added()).join(), /The text of the prompt \/mcp__docs__review of the MCP server docs/);
    await code.chat.locator(".row.addedText summary").first().click();
    await code.chat.locator(".row.addedText", { hasText: 'Review {"file":"src/two.txt","focus":"error handling"}' }).waitFor();
  });

  it("is removed after a question, and its file goes with it", async () => {
    await code.run("lashd: MCP Servers...");
    const row = code.page.locator(".quick-input-list .monaco-list-row", { hasText: "docs" });
    await row.hover();
    await row.getByRole("button", { name: "Remove it" }).click();
    assert.match(await code.dialog("Remove"), /Remove the MCP server docs\?/);
    await until(() => docs() === undefined);
    assert.equal(existsSync(file), false);
    await until(async () => (await code.quickInput.getAttribute("placeholder")) === "There are no MCP servers yet.");
  });
});
