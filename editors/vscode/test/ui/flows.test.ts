import { strict as assert } from "node:assert";
import type { DebugPromptResult, DecisionListResult, SessionListResult, StatusResult } from "../../src/protocol";
import { patienceMs } from "./browser";
import { script, story } from "./script";
import { Workbench } from "./workbench";

describe("issue/6-1 a real VS Code", function () {
  this.timeout(3 * patienceMs);
  this.retries(1); // a browser, an editor and a daemon compete for the CPU
  const code = new Workbench();

  before(() => code.start(script));
  afterEach(async function () {
    await code.shot(`${this.currentTest?.state ?? "none"} ${this.currentTest?.title ?? ""}`);
  });
  after(() => code.close());

  it("starts a session from the view", async () => {
    await code.view();
    await code.page.getByRole("button", { name: "New Session" }).last().click();
    await code.say("hi");
    await code.chat.locator(".agentMessage", { hasText: "Hello!" }).waitFor();
    await code.page.getByRole("treeitem", { name: /^hi/ }).first().waitFor();
  });

  it("streams a turn, and asks before a file is written", async () => {
    await code.newSession();
    await code.say("write it");
    await code.chat.locator(".agentMessage strong", { hasText: "it" }).waitFor();
    await code.chat.locator("#asked .card").getByRole("button", { name: "Allow once" }).click();
    await code.chat.locator(".agentMessage", { hasText: "Written." }).waitFor();
    assert.equal(await code.chat.locator("#asked .card").count(), 0);
    await code.chat.getByRole("button", { name: "Open diff" }).click();
    await code.page.locator(".monaco-diff-editor").first().waitFor();
  });

  it("removes a question that another client answered, even while the chat is hidden", async () => {
    await code.newSession();
    await code.say("write it");
    await code.chat.locator("#asked .card").waitFor();
    await code.run("lashd: New Session");
    const toast = code.page.locator(".notification-toast", { hasText: "Allow this tool call?" });
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

  it("leaves an unchecked tool out of the next request", async () => {
    await code.newSession();
    const [sessions, tools] = ["Sessions", "Plugins and Tools"].map((title) => code.page.locator(`.pane-header[aria-label="${title} Section"]`));
    await tools?.click();
    await sessions?.click(); // make room for all plugins
    const plugin = code.page.getByRole("treeitem", { name: /^workspace/ });
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
