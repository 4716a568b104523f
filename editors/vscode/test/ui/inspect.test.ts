import { strict as assert } from "node:assert";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { DecisionListResult, Event, SessionListResult, SessionReadResult, SnapshotListResult, SnapshotPreviewResult } from "../../src/protocol";
import { patienceMs, until } from "./browser";
import { diffLines } from "./diffEditor";
import { script } from "./script";
import { Workbench } from "./workbench";

describe("issue/6-1 snapshots, undo, traces and settings in a real VS Code", function () {
  this.timeout(3 * patienceMs);
  const code = new Workbench();
  const newest = () => code.call<SessionListResult>("session/list", { limit: 1 }).data[0]?.sessionId ?? "";
  const row = (name: string | RegExp) => code.page.getByRole("treeitem", { name }).first();
  const unfold = async (title: string) => {
    const pane = code.page.locator(`.pane-header[aria-label="${title} Section"]`);
    if ((await pane.getAttribute("aria-expanded")) !== "true") {
      await pane.click();
    }
  };
  const field = () => code.page.locator(".quick-input-widget:visible input.input");
  const say = async (text: string, answer: string) => {
    await code.say(text);
    await code.chat.locator(".agentMessage", { hasText: answer }).last().waitFor();
  };

  before(() => code.start(script));
  afterEach(async function () {
    await code.shot(`${this.currentTest?.state ?? "none"} ${this.currentTest?.title ?? ""}`);
    await code.run("View: Close All Editors");
  });
  after(() => code.close());

  it("takes a snapshot, compares it, and restores it after confirmation", async () => {
    await code.newSession();
    await say("hi", "Hello!");
    await code.run("lashd: Take Snapshot...");
    await code.page.locator(".quick-input-widget:visible .quick-input-title", { hasText: 'Snapshot of "hi"' }).waitFor();
    await field().fill("before");
    await code.page.keyboard.press("Enter");
    await row(/^before/).waitFor(); // the view opens
    await code.chat.locator(".notice", { hasText: 'Saved "before", a snapshot of "hi": its conversation, plugins, tools and monitors, but no files.' }).waitFor();
    await code.run("Notifications: Clear All Notifications");
    await say("and more", "Hello!");
    await row(/^before/).hover();
    await row(/^before/).getByRole("button", { name: "Restore Snapshot" }).click();
    const diff = code.page.locator(".monaco-diff-editor").first();
    await diff.getByText("You: and more").first().waitFor();
    const seen = code.call<SnapshotPreviewResult>("snapshot/preview", { sessionId: newest(), name: "before" });
    assert.equal(seen.now.nodes, 2, "nothing changes before the confirmation");
    const toast = code.page.locator(".notification-toast", { hasText: "2 conversation entries will be hidden" });
    await toast.getByRole("button", { name: "Restore" }).click();
    await toast.waitFor({ state: "detached" });
    await row(/^hi/).click();
    await code.chat.locator(".userMessage", { hasText: "hi" }).waitFor();
    await code.chat.locator(".userMessage", { hasText: "and more" }).waitFor({ state: "detached" });
    await code.menu(row(/^before/), "Delete Snapshot");
    await code.dialog("Delete");
    await row(/^before/).waitFor({ state: "detached" });
    assert.deepEqual(code.call<SnapshotListResult>("snapshot/list", { sessionId: newest() }).data, []);
  });

  it("lists the file changes of turns and undoes them", async () => {
    await code.newSession();
    await unfold("Snapshots");
    await code.say("write it");
    await code.chat.getByRole("button", { name: "Allow once" }).click();
    await row(/^Turn changed 1 file/).click();
    await code.page.locator(".tab", { hasText: "File changes" }).waitFor();
    assert.deepEqual(await diffLines(code.page, "x"), { before: [], after: ["x", "y"] });
    await row(/^Turn changed 1 file/).hover();
    await row(/^Turn changed 1 file/).getByRole("button", { name: "Undo..." }).click();
    await code.choose("Files only");
    assert.match(await code.dialog("Undo"), /new\.txt will be deleted/);
    await row(/^Undo changed 1 file/).waitFor();
    await row(/^Turn changed 1 file.*undone/).waitFor();
    assert.equal(existsSync(join(code.work, "new.txt")), false);
  });

  it("shows the trace of a running turn and saves it", async () => {
    await code.newSession();
    await code.say("write it");
    await code.chat.locator("#asked .card").waitFor();
    await code.run("lashd: Show Turn Trace...");
    const line = (text: string) => code.page.locator(".monaco-editor .view-line", { hasText: text }).first();
    await line("question").waitFor();
    const [asked] = code.call<DecisionListResult>("decision/list", {}).data;
    code.call("decision/respond", { decisionId: asked?.decisionId, choice: "allowOnce", argsHash: asked?.argsHash });
    for (const text of ["model call 1: scripted/scripted", "write started", "answered: allowOnce by", "write: completed"]) {
      await line(text).waitFor();
    }
    await line("question").click();
    await code.page.keyboard.press("Control+End"); // only the visible lines are in the page
    await line("turn ended: assistantMessage").waitFor();
    await code.run("lashd: Save Trace as JSON Lines...");
    await until(async () => (await field().inputValue()).endsWith(".jsonl")); // the input of the command is gone
    const file = join(code.work, "turn.jsonl");
    await field().fill(file);
    await code.page.keyboard.press("Enter");
    await until(() => existsSync(file));
    const types = readFileSync(file, "utf8").trim().split("\n").map((text) => (JSON.parse(text) as Event).type);
    assert.deepEqual([types[0], types.includes("decision/resolved"), types.at(-1)], ["turn/accepted", true, "turn/completed"]);
  });

  it("lists the turns of a session by their prompts, and shows the trace of the chosen one", async () => {
    await code.newSession();
    await say("hi", "Hello!");
    await say("make a plan", "Here is a table");
    await code.run("lashd: Show Turn Trace...");
    const rows = code.page.locator(".quick-input-list .quick-input-list-row:first-child .label-name");
    await rows.nth(1).waitFor();
    assert.deepEqual(await rows.allInnerTexts(), ["make a plan", "hi"]);
    await code.choose("hi");
    const line = (text: string) => code.page.locator(".monaco-editor .view-line", { hasText: text });
    await line("turn ended: assistantMessage").waitFor();
    assert.deepEqual([await line("model call 1").count(), await line("update_plan").count()], [1, 0]);
  });

  it("shows and changes model and mode, follows changes by other clients, and shows the cost", async () => {
    await code.newSession();
    const config = () => code.call<SessionReadResult>("session/read", { sessionId: newest(), limit: 1 }).session.config;
    const [model, mode] = ["Model", "Mode"].map((name) => code.chat.getByRole("button", { name: new RegExp(`^${name}: `) }));
    assert.deepEqual([await model?.innerText(), await mode?.innerText()], ["scripted", "Ask before edits"]);
    await code.say("hi");
    await code.chat.locator(".row.end[title=\"1500 tokens in, 100 out, $0.0040\"]").waitFor();
    await model?.click();
    await code.choose("careful");
    await code.chat.getByRole("button", { name: "Model: careful" }).waitFor();
    await code.chat.locator("#composer textarea").press("Control+Alt+o");
    await code.choose("Do not ask");
    await code.chat.getByRole("button", { name: "Mode: Do not ask" }).waitFor();
    assert.deepEqual([config().model.id, config().approval?.mode], ["careful", "allow"]);
    await code.chat.getByRole("button", { name: "Sandbox: No sandbox" }).click();
    await code.choose("They change only this folder");
    await code.chat.getByRole("button", { name: "Sandbox: workspace" }).waitFor();
    assert.deepEqual([config().approval?.sandbox, config().approval?.mode], ["workspace", "allow"]);
    code.call("session/configure", { sessionId: newest(), model: "scripted", approval: {}, options: { plan: { mode: "plan" } } });
    await code.chat.getByRole("button", { name: "Model: scripted" }).waitFor();
    await code.chat.getByRole("button", { name: "Mode: Plan" }).waitFor();
  });
});
