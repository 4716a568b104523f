import { strict as assert } from "node:assert";
import type { DebugPromptResult, PluginListResult, SessionListResult } from "../../src/protocol";
import { patienceMs, until } from "./browser";
import { script } from "./script";
import { Workbench } from "./workbench";

describe("issue/6-1 trust in a workspace plugin", function () {
  this.timeout(3 * patienceMs);
  const code = new Workbench();
  const toast = () => code.page.locator(".notification-toast", { hasText: "Trust the plugin guard" });
  const shown = (text: RegExp, where = ".monaco-editor") => code.page.locator(`${where} .view-line`, { hasText: text }).first().waitFor();
  const write = (advice: string) =>
    code.write("work/.agents/plugins/guard/plugin.json", JSON.stringify({ name: "guard", version: "1.0.0", lashd: { prompt: [{ slot: "guidance", content: advice }] } }, undefined, 2));
  const status = () => code.call<PluginListResult>("plugin/list", { cwd: code.work }).data.find((one) => one.name === "guard")?.status;
  const prompt = () => {
    const [session] = code.call<SessionListResult>("session/list", { limit: 1 }).data;
    return JSON.stringify(code.call<DebugPromptResult>("debug/prompt", { sessionId: session?.sessionId }));
  };
  const look = async () => {
    const plugin = code.page.getByRole("treeitem", { name: /^guard/ }).filter({ hasText: /untrusted|modified/ });
    await code.menu(plugin, "Review and Trust");
    await toast().waitFor();
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
    await shown(/Be.careful/);
    assert.deepEqual([status(), prompt().includes("Be careful.")], ["untrusted", false]);
    await toast().getByRole("button", { name: "Trust" }).click();
    await until(() => status() === "loaded");
    await code.chat.locator("#composer textarea").waitFor({ state: "hidden" });
    assert.equal(prompt().includes("Be careful."), true);
  });

  it("ends when the plugin changes; the review compares both versions", async () => {
    write("Be reckless.");
    await until(() => status() === "modified");
    await look();
    await shown(/Be.careful/, ".monaco-diff-editor .original");
    await shown(/Be.reckless/, ".monaco-diff-editor .modified");
    assert.deepEqual([prompt().includes("Be careful."), prompt().includes("Be reckless.")], [true, false]);
    await toast().getByRole("button", { name: "Trust" }).click();
    await until(() => status() === "loaded" && prompt().includes("Be reckless."));
  });

  it("does not cover files that changed during the review", async () => {
    write("Be quick.");
    await until(() => status() === "modified");
    await look();
    write("Be sly.");
    await until(() => prompt().includes("Be reckless.") && status() === "modified");
    await toast().getByRole("button", { name: "Trust" }).click();
    await code.page.locator(".notification-toast", { hasText: "files changed since you read them" }).waitFor();
    assert.deepEqual([status(), prompt().includes("Be sly."), prompt().includes("Be quick.")], ["modified", false, false]);
  });
});
