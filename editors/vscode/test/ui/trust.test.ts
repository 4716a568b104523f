import { strict as assert } from "node:assert";
import { join } from "node:path";
import type { DebugPromptResult, PluginListResult, SessionListResult } from "../../src/protocol";
import { patienceMs, until } from "./browser";
import { titleButton } from "./diffEditor";
import { filesWith } from "./modelServer";
import { script } from "./script";
import { Workbench } from "./workbench";

describe("issue/6-1 trust in a workspace plugin", function () {
  this.timeout(3 * patienceMs);
  const code = new Workbench();
  const trust = () => titleButton(code.page, "Trust These Files");
  const shown = (text: RegExp, where = ".monaco-editor") => code.page.locator(`${where} .view-line`, { hasText: text }).first().waitFor();
  const write = (advice: string) =>
    code.write("work/.agents/plugins/guard/plugin.json", JSON.stringify({ name: "guard", version: "1.0.0", lashd: { prompt: [{ slot: "guidance", content: advice }] } }, undefined, 2));
  const status = () => code.call<PluginListResult>("plugin/list", { cwd: code.work }).data.find((one) => one.name === "guard")?.status;
  const prompt = () => {
    const [session] = code.call<SessionListResult>("session/list", { limit: 1 }).data;
    return JSON.stringify(code.call<DebugPromptResult>("debug/prompt", { sessionId: session?.sessionId }));
  };
  const look = async () => {
    const plugin = code.page.getByRole("treeitem", { name: /^guard/ }).filter({ hasText: /not approved/ });
    await code.menu(plugin, "Review and Trust");
    await trust().waitFor();
  };

  before(async () => {
    await code.start(script);
    await code.newSession();
    await code.page.locator('.pane-header[aria-label="Plugins and Tools Section"]').click();
    await code.page.locator('.pane-header[aria-label="Sessions Section"]').click();
  });
  afterEach(async function () {
    await code.shot(`${this.currentTest?.state ?? "none"} ${this.currentTest?.title ?? ""}`);
  });
  after(() => code.close());

  it("covers exactly the shown files, and nothing is loaded before", async () => {
    write("Be careful.");
    await look();
    await shown(/Trust.in.guard.covers.exactly.the.1.file.below/);
    await shown(/Be.careful/);
    assert.deepEqual([status(), prompt().includes("Be careful.")], ["untrusted", false]);
    await trust().click();
    await until(() => status() === "loaded");
    assert.equal(prompt().includes("Be careful."), true);
  });

  it("ends when the plugin changes; the review compares both versions", async () => {
    write("Be reckless.");
    await until(() => status() === "modified");
    await look();
    await shown(/Be.careful/, ".monaco-diff-editor .original");
    await shown(/Be.reckless/, ".monaco-diff-editor .modified");
    assert.deepEqual([prompt().includes("Be careful."), prompt().includes("Be reckless.")], [true, false]);
    await trust().click();
    await until(() => status() === "loaded" && prompt().includes("Be reckless."));
  });

  it("shows of a folder with an .mcp.json only the files that trust covers, and stores none of their texts", async () => {
    code.write("work/.env", "SECRET=of-the-folder\n");
    code.write("work/.git/config", "[core] of-git\n");
    code.write("work/serve.sh", "echo of-the-server\n");
    code.write("work/.mcp.json", JSON.stringify({ mcpServers: { docs: { command: "sh", args: ["serve.sh"] } } }));
    await code.menu(code.page.getByRole("treeitem", { name: /^\.mcp\.json \(docs\)/ }).filter({ hasText: "not approved" }), "Review and Trust");
    await trust().waitFor();
    await shown(/of-the-server/);
    await code.page.locator(".monaco-editor .view-line").first().click();
    await code.page.keyboard.press("Control+End");
    const headings = (await code.page.locator(".monaco-editor .view-line", { hasText: /^====/ }).allInnerTexts()).map((line) => line.replaceAll("\u00a0", " "));
    assert.deepEqual(headings.filter((line) => !/\/(sh|dash|bash)( |$)/.test(line)).map((line) => line.replace(code.work, "")), ["==== .mcp.json", "==== /serve.sh"]);
    await trust().click();
    await until(() => code.call<PluginListResult>("plugin/list", { cwd: code.work }).data.some(({ name, status }) => name === "project" && status === "loaded"));
    await code.chat.locator(".notice", { hasText: /^docs failed: the program ended/ }).getByRole("button", { name: "Show MCP Servers" }).waitFor();
    assert.deepEqual([filesWith(join(code.dir, "ud"), "of-the-server"), filesWith(join(code.dir, "ud"), "SECRET=of")], [[], []]);
  });

  it("does not cover files that changed during the review", async () => {
    write("Be quick.");
    await until(() => status() === "modified");
    await look();
    write("Be sly.");
    await until(() => prompt().includes("Be reckless.") && status() === "modified");
    await trust().click();
    await code.page.locator(".notification-toast", { hasText: "files changed since you read them" }).waitFor();
    assert.deepEqual([status(), prompt().includes("Be sly."), prompt().includes("Be quick.")], ["modified", false, false]);
  });
});
