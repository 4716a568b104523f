import { strict as assert } from "node:assert";
import { readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import type { SessionListResult, TurnListResult } from "../../src/protocol";
import { patienceMs } from "./browser";
import { titleButton } from "./diffEditor";
import { Workbench } from "./workbench";

const call = (name: string, args: object = {}) => ({ toolCalls: [{ name, args }] });
const expectResult = (lastResultContains: string, text: string) => ({ expect: { lastResultContains }, text });
const outside = "outside the folders that are open";
const edit = { path: "readme.txt", old: "a workspace", new: "a changed workspace" };

/** The tool calls of the model and the results that they must return. */
const script = {
  models: ["demo"],
  turns: [
    { match: { lastUserContains: "selected" }, replies: [call("editor_open_files"), expectResult("Active file: readme.txt, selected lines 1 to 2:\na workspace", "I see what is selected.")] },
    { match: { lastUserContains: "problems" }, replies: [call("editor_diagnostics", { path: "wrong.json" }), expectResult("wrong.json:2:8 error: ", "I see the mistake.")] },
    { match: { lastUserContains: "show" }, replies: [call("editor_reveal", { path: "long.txt", line: 300 }), expectResult("Showing long.txt", "It is shown.")] },
    { match: { lastUserContains: "outside" }, replies: [call("editor_reveal", { path: "../home/config.toml" }), { ...expectResult(outside, ""), ...call("editor_reveal", { path: "up/home/config.toml" }) }, expectResult(outside, "I may not.")] },
    { match: { lastUserContains: "change" }, replies: [call("editor_apply_edit", edit), expectResult("Edited readme.txt", "You took it.")] },
    { match: { lastUserContains: "discard" }, replies: [call("editor_apply_edit", edit), expectResult("the user discarded the edit", "You did not want it.")] },
    { match: { lastUserContains: "build" }, replies: [call("editor_run_task", { name: "build" }), expectResult("build finished with exit code 3", "It fails.")] },
    { match: { lastUserContains: "all tasks" }, replies: [call("editor_run_task", { name: "both" }), expectResult("both finished.", "They have run.")] },
  ],
  otherwise: { replies: [{ text: "Hello!" }] },
};

const shell = (label: string, command: string) => ({ label, type: "shell", command, problemMatcher: [] });
const tasks = { version: "2.0.0", tasks: [shell("build", "exit 3"), shell("one", "true"), shell("two", "true"), { label: "both", dependsOn: ["one", "two"], problemMatcher: [] }] };

describe("issue/6-1 editor tools", function () {
  this.timeout(3 * patienceMs);
  const code = new Workbench();
  const readme = join(code.work, "readme.txt");
  const answer = (text: string) => code.chat.locator(".agentMessage", { hasText: text }).waitFor();
  const allow = () => code.chat.getByRole("button", { name: "Allow once" }).click();
  const decide = (what: string) => titleButton(code.page, what).click();
  const open = async (file: string) => {
    await code.run("Go to File...");
    await code.page.locator(".quick-input-widget:visible input.input").fill(file);
    await code.choose(file);
    await code.page.locator(".tab.active", { hasText: file }).waitFor();
  };
  const ask = async (text: string) => {
    await code.run("lashd: New Session");
    await code.chat.locator("#composer textarea").waitFor();
    await code.say(text);
  };

  before(async () => {
    code.write("work/wrong.json", '{\n  "a": }\n');
    code.write("work/long.txt", Array.from({ length: 400 }, (_, at) => `line ${at + 1}\n`).join(""));
    symlinkSync("..", join(code.work, "up"));
    code.write("work/.vscode/tasks.json", JSON.stringify(tasks));
    await code.start(script);
    await code.view();
  });
  beforeEach(() => code.write("work/readme.txt", "a workspace\n"));
  afterEach(async function () {
    await code.shot(`${this.currentTest?.state ?? "none"} ${this.currentTest?.title ?? ""}`);
    await code.run("View: Close All Editors");
  });
  after(() => code.close());

  it("list open files and the selection", async () => {
    await open("readme.txt");
    await code.page.locator(".monaco-editor .view-line").first().click();
    await code.page.keyboard.press("Control+a");
    await ask("what is selected?");
    await answer("I see what is selected.");
  });

  it("list the problems of the Problems view", async () => {
    await open("wrong.json");
    await code.page.locator(".monaco-editor .squiggly-error").first().waitFor();
    await ask("which problems are there?");
    await answer("I see the mistake.");
  });

  it("show a file at a line", async () => {
    await ask("show it");
    await answer("It is shown.");
    await code.page.locator(".monaco-editor .view-line", { hasText: /^line.300$/ }).waitFor();
  });

  it("access only open folders", async () => {
    await ask("look outside");
    await answer("I may not.");
  });

  it("show an edit before they apply it", async () => {
    await ask("change it");
    await allow();
    await code.page.locator(".monaco-diff-editor .view-line", { hasText: /^a.changed.workspace$/ }).waitFor();
    assert.equal(readFileSync(readme, "utf8"), "a workspace\n");
    await decide("Apply Edit");
    await answer("You took it.");
    assert.equal(readFileSync(readme, "utf8"), "a changed workspace\n");
  });

  it("do not apply a discarded edit", async () => {
    await ask("something to discard");
    await allow();
    await decide("Discard Edit");
    await answer("You did not want it.");
    assert.equal(readFileSync(readme, "utf8"), "a workspace\n");
  });

  it("do not apply an edit after the turn was stopped", async () => {
    await ask("change it");
    await allow();
    const preview = code.page.locator(".tab", { hasText: "(proposed)" });
    await preview.waitFor();
    const [session] = code.call<SessionListResult>("session/list", { limit: 1 }).data;
    const [turn] = code.call<TurnListResult>("turn/list", { sessionId: session?.sessionId }).data;
    code.call("turn/interrupt", { turnId: turn?.turnId });
    await preview.waitFor({ state: "detached" });
    await code.page.locator(".notification-toast", { hasText: "no longer waiting" }).waitFor();
    await code.page.waitForTimeout(1500); // enough time for a wrong edit to happen
    assert.equal(readFileSync(readme, "utf8"), "a workspace\n");
  });

  it("run a workspace task and return its exit code", async () => {
    await ask("build it");
    await allow();
    await answer("It fails.");
  });

  it("run a task that only runs other tasks", async () => {
    await ask("all tasks");
    await allow();
    await answer("They have run.");
  });
});
