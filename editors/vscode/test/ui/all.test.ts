import { strict as assert } from "node:assert";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { DecisionListResult, SessionAttachResult, SessionListResult, SnapshotListResult } from "../../src/protocol";
import { patienceMs, until } from "./browser";
import { unreadable } from "./contrast";
import { diffLines } from "./diffEditor";
import { script } from "./script";
import { chooseTheme } from "./themes";
import { Workbench } from "./workbench";

describe("issue/6-1 a real VS Code, all flows", function () {
  this.timeout(3 * patienceMs);
  const code = new Workbench();
  const newest = () => code.call<SessionListResult>("session/list", { limit: 1 }).data[0];
  const row = (title: string) => code.page.getByRole("treeitem", { name: title }).first();
  const write = async () => {
    await code.newSession();
    await code.say("write it");
    await code.chat.getByRole("button", { name: "Allow once" }).click();
    await code.chat.locator(".agentMessage", { hasText: "Written." }).waitFor();
  };

  before(() => code.start(script));
  afterEach(async function () {
    await code.shot(`${this.currentTest?.state ?? "none"} ${this.currentTest?.title ?? ""}`);
    await code.run("View: Close All Editors");
    rmSync(join(code.work, "new.txt"), { force: true });
  });
  after(() => code.close());

  it("undoes conversation and files, and warns about lost changes", async () => {
    await write();
    const file = join(code.work, "new.txt");
    writeFileSync(file, "mine\n");
    const back = async (way: string, answer: string) => {
      await code.chat.locator(".userMessage").first().hover();
      await code.chat.getByRole("button", { name: "Undo turn" }).first().click();
      await code.choose(way);
      return code.dialog(answer);
    };
    assert.match(await back("Conversation and files", "Cancel"), /new\.txt will be deleted.*Later changes to it will be lost/s);
    assert.equal(readFileSync(file, "utf8"), "mine\n");
    writeFileSync(file, "x\ny\n");
    assert.doesNotMatch(await back("Conversation and files", "Undo"), /will be lost/);
    await code.chat.locator(".row").first().waitFor({ state: "detached" });
    assert.throws(() => readFileSync(file, "utf8"), /ENOENT/);
    assert.equal(await code.chat.locator("#composer textarea").inputValue(), "write it");
    await code.chat.locator(".notice", { hasText: "Undid a part of the conversation. Restored 1 file." }).getByRole("button", { name: "Revert" }).click();
    await until(() => readFileSync(file, "utf8") === "x\ny\n");
    await code.chat.locator(".agentMessage", { hasText: "Written." }).waitFor(); // the conversation is back, too
    await until(async () => (await code.chat.locator("#composer textarea").inputValue()) === ""); // else Enter would send it again
    assert.equal(code.call<SnapshotListResult>("snapshot/list", { sessionId: newest()?.sessionId }).data.length, 0);
  });

  it("shows all file changes of a turn", async () => {
    await write();
    await code.chat.locator(".row.end", { hasText: "1 file changed" }).hover();
    await code.chat.getByRole("button", { name: "Show changes" }).click();
    await code.page.locator(".tab", { hasText: "Changes of the turn" }).waitFor();
    assert.deepEqual(await diffLines(code.page, "x"), { before: [], after: ["x", "y"] });
    await code.load();
    await code.page.locator(".tab", { hasText: "Changes of the turn" }).waitFor({ state: "detached" }); // its texts are gone
    await code.chat.locator("#composer textarea").waitFor();
  });

  it("forks at the end of a turn", async () => {
    await code.newSession();
    await code.say("first");
    await code.chat.locator(".row.end").first().hover();
    await code.say("second");
    await code.chat.locator(".row.end").nth(1).waitFor();
    const whole = newest()?.sessionId;
    await code.chat.locator(".row.end").first().hover();
    await code.chat.getByRole("button", { name: "Fork here" }).first().click();
    const forks = () => code.call<SessionListResult>("session/list", {}).data.filter((session) => session.relation.source?.sessionId === whole);
    await until(() => forks().length === 1);
    await until(async () => (await code.chat.locator(".userMessage .text").allInnerTexts()).join() === "first");
  });

  it("restores chats and drafts after a window reload", async () => {
    await code.newSession();
    await code.say("hi");
    await code.chat.locator(".agentMessage", { hasText: "Hello!" }).waitFor();
    await code.chat.locator("#composer textarea").fill("not sent yet");
    const loaded = code.page.waitForEvent("load");
    await code.load();
    await loaded;
    await code.chat.locator(".agentMessage", { hasText: "Hello!" }).waitFor();
    assert.equal(await code.chat.locator("#composer textarea").inputValue(), "not sent yet");
  });

  it("queues an input, removes it, and stops the turn", async () => {
    await code.newSession();
    await code.say("count");
    await code.chat.getByRole("button", { name: "Allow once" }).click();
    await code.chat.locator(".toolCall .output", { hasText: "line 2" }).waitFor();
    await code.say("later");
    await code.chat.locator(".queued", { hasText: "later" }).waitFor();
    await code.chat.getByRole("button", { name: "Remove", exact: true }).click();
    await code.chat.locator(".queued").waitFor({ state: "detached" });
    await code.chat.getByRole("button", { name: "Stop" }).click();
    await code.chat.locator(".row.end", { hasText: "Stopped." }).waitFor();
  });

  it("steers a running turn", async () => {
    await code.newSession();
    await code.say("count");
    await code.chat.getByRole("button", { name: "Allow once" }).click();
    await code.chat.locator(".toolCall .output", { hasText: "line 1" }).waitFor();
    await code.chat.locator("#composer textarea").fill("and then");
    await code.chat.locator("#composer textarea").press("Control+Enter");
    await code.chat.locator(".userMessage", { hasText: "and then" }).waitFor();
    await code.chat.locator(".agentMessage").first().waitFor();
    assert.equal(await code.chat.locator(".row.end").count() <= 1, true, "there is only one turn");
  });

  it("denies a call and reports that to the model", async () => {
    rmSync(join(code.work, "new.txt"), { force: true });
    await code.newSession();
    await code.say("write it");
    await code.chat.locator("#asked .card").waitFor();
    await code.chat.locator("#composer textarea").press("Alt+n");
    await code.chat.locator(".toolCall .failed").waitFor();
    await code.chat.locator(".row.end").waitFor();
    const last = code.call<SessionAttachResult>("session/attach", { sessionId: newest()?.sessionId }).items?.findLast(({ kind }) => kind === "toolCall");
    assert.deepEqual([last?.output?.failure?.class, existsSync(join(code.work, "new.txt"))], ["permissionDenied", false]);
  });

  it("answers from a notification while the chat is hidden", async () => {
    await code.newSession();
    await code.say("write it");
    await code.chat.locator("#asked .card").waitFor();
    await code.run("lashd: New Session");
    const toast = code.page.locator(".notification-toast", { hasText: "new.txt?" });
    assert.equal(await toast.getByText("Allow once").count(), 0); // the diff is only in the chat
    await toast.getByText("Deny").click();
    await toast.waitFor({ state: "detached" });
    await until(() => code.call<DecisionListResult>("decision/list", {}).data.length === 0);
    assert.equal(existsSync(join(code.work, "new.txt")), false);
  });

  it("renames, archives and deletes from the tree", async () => {
    await code.newSession();
    await code.say("a session to go");
    await row("a session to go").waitFor();
    await code.menu(row("a session to go"), "Rename Session");
    await code.page.locator(".quick-input-widget:visible input.input").fill("another name");
    await code.page.keyboard.press("Enter");
    await code.page.locator(".tab", { hasText: "another name" }).waitFor();
    await code.menu(row("another name"), "Archive Session");
    await code.page.locator(".tab", { hasText: "another name" }).waitFor({ state: "detached" });
    await code.page.locator(".notification-toast", { hasText: 'Archived "another name".' }).getByRole("button", { name: "Undo" }).click();
    await code.page.locator(".tab", { hasText: "another name" }).waitFor();
    assert.equal(newest()?.title, "another name");
    await code.menu(row("another name"), "Archive Session");
    await code.page.getByRole("treeitem", { name: /^Archived/ }).waitFor();
    assert.equal(newest()?.title === "another name", false);
    await code.page.getByRole("treeitem", { name: /^Archived/ }).click();
    await code.menu(row("another name"), "Delete Session");
    await code.dialog("Delete");
    await code.page.getByRole("treeitem", { name: /^Archived/ }).waitFor({ state: "detached" });
  });

  it("shows a plan, a table and code", async () => {
    await code.newSession();
    await code.say("make a plan");
    await code.chat.locator(".plan summary", { hasText: "Plan: 1 of 3" }).click();
    await code.chat.locator(".plan .inProgress", { hasText: "change" }).waitFor();
    assert.deepEqual(await code.chat.locator(".markdown td").allInnerTexts(), ["1", "2"]);
    await code.chat.locator(".markdown pre code", { hasText: "const x = 1;" }).waitFor();
  });

  it("shows tasks with their output", async () => {
    await code.newSession();
    await code.say("in the background");
    await code.chat.getByRole("button", { name: "Allow once" }).click();
    await code.chat.locator(".agentMessage", { hasText: "It runs." }).waitFor();
    const [sessions, tasks] = ["Sessions", "Tasks and Monitors"].map((title) => code.page.locator(`.pane-header[aria-label="${title} Section"]`));
    await tasks?.click();
    await row("the server").click();
    await code.page.locator(".part.panel .xterm-rows").getByText("from the background").waitFor();
    await code.chat.getByRole("button", { name: "Show output" }).click();
    await until(async () => (await code.page.locator(".terminal-tabs-entry", { hasText: "the server" }).count()) === 2);
    await tasks?.click();
    await sessions?.waitFor();
  });

  it("shows the problems of a plugin until they are fixed", async () => {
    const manifest = (hook: string) => JSON.stringify({ name: "guard", version: "1.0.0", lashd: { prompt: [{ slot: hook, content: "Be careful." }] } }, undefined, 2);
    const problems = code.page.locator("#status\\.problems");
    code.write("work/.agents/plugins/guard/plugin.json", manifest("nonsense").replace('"slot"', '"slott"'));
    await until(async () => /^\s*2\s+0/.test(await problems.innerText()));
    code.write("work/.agents/plugins/guard/plugin.json", manifest("guidance"));
    await until(async () => /^\s*0\s+0/.test(await problems.innerText()));
  });

  it("lets the model use the editor", async () => {
    await code.newSession();
    await code.say("look at the editor");
    await code.chat.locator(".agentMessage", { hasText: "I have seen it." }).waitFor();
    await code.chat.locator(".toolCall .completed", { hasText: "Listed the open files" }).waitFor();
    await code.page.locator(".tab", { hasText: "readme.txt" }).waitFor();
  });

  it("attaches a selection to a hidden chat", async () => {
    await code.newSession();
    const chat = newest()?.sessionId;
    await code.page.keyboard.press("Control+p");
    await code.page.locator(".quick-input-widget:visible input.input").fill("readme.txt");
    await code.choose("readme.txt");
    await code.page.locator(".monaco-editor .view-line", { hasText: "a workspace" }).click();
    await code.page.keyboard.press("Control+a");
    await code.run("lashd: Ask lashd About the Selection");
    await code.chat.locator(".chip", { hasText: /^readme\.txt:1$/ }).waitFor();
    await code.page.locator(".monaco-editor .view-line", { hasText: "a workspace" }).waitFor(); // the chat stands beside it
    await code.say("hi, what is this?");
    await code.chat.locator(".userMessage .quoted summary", { hasText: "1 line" }).click();
    await code.chat.locator(".userMessage pre", { hasText: "a workspace" }).waitFor();
    assert.equal(newest()?.sessionId, chat);
  });

  it("follows the color theme of the editor", async () => {
    await code.newSession();
    await code.say("make a plan");
    await code.chat.locator(".markdown pre code span", { hasText: "const" }).first().waitFor();
    await code.say("write it");
    await code.chat.locator("#asked .card").waitFor();
    const themes = [["Light Modern", "vscode-light"], ["Dark Modern", "vscode-dark"], ["Dark High Contrast", "vscode-high-contrast"]] as const;
    const colors = new Set<string>();
    await code.chat.locator(".markdown").first().waitFor();
    for (const [theme, kind] of themes) {
      await chooseTheme(code, theme);
      await code.chat.locator(`body.${kind}`).waitFor();
      await code.shot(`theme ${kind}`);
      await until(async () => (await code.chat.locator(".markdown pre code span").evaluateAll((all: HTMLElement[]) => all.some((span) => span.style.getPropertyValue("--token") !== ""))) && (await unreadable(code.chat.locator("body"))).length === 0); // the colors of code follow
      colors.add(await code.chat.locator("body").evaluate((body) => `${getComputedStyle(body).color} on ${getComputedStyle(body).backgroundColor}`));
    }
    assert.equal(colors.size, 3, [...colors].join(", "));
    await code.chat.getByRole("button", { name: "Deny" }).click();
  });

  it("starts the demo, which is separate from the user's data", async () => {
    await code.run("lashd: Try lashd Without a Model");
    await code.chat.locator("#composer textarea").waitFor();
    await code.say("fix the typo");
    for (const question of ["Create greeting.txt?", "Change greeting.txt?"]) {
      await code.chat.getByRole("group", { name: question }).getByRole("button", { name: "Allow once" }).click();
    }
    await code.chat.locator(".agentMessage", { hasText: "now says Hello, world!" }).waitFor();
    assert.equal(code.call<SessionListResult>("session/list", {}).data.some((session) => session.title === "fix the typo"), false);
    await code.run("lashd: Leave Demo");
    await code.status("check").waitFor();
  });
});
