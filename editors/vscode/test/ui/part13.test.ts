import { strict as assert } from "node:assert";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { DecisionListResult, SessionListResult } from "../../src/protocol";
import { patienceMs, until } from "./browser";
import { sameColors } from "./codeColors";
import { diffLines, titleButton } from "./diffEditor";
import { chatIn } from "./parts";
import { sample, script } from "./script";
import { chooseTheme } from "./themes";
import { Workbench } from "./workbench";

/** plainColors switches off the colors that VS Code adds to those of the theme's rules for code. */
const plainColors = { "editor.semanticHighlighting.enabled": false, "editor.bracketPairColorization.enabled": false };

describe("part/13 a real VS Code", function () {
  this.timeout(3 * patienceMs);
  const code = new Workbench();
  const open = () => code.call<DecisionListResult>("decision/list", {}).data;
  const write = async () => {
    await code.newSession();
    await code.say("write it");
    await code.chat.getByRole("button", { name: "Allow once" }).click();
    await code.chat.locator(".agentMessage", { hasText: "Written." }).waitFor();
  };

  const git = (...args: string[]) => assert.equal(spawnSync("git", ["-c", "user.name=t", "-c", "user.email=t@t.test", ...args], { cwd: code.work }).status, 0);

  before(async () => {
    code.write("work/.gitignore", "node_modules\n");
    git("init", "-q");
    await code.start(script, { settings: plainColors });
  });
  afterEach(async function () {
    await code.shot(`${this.currentTest?.state ?? "none"} ${this.currentTest?.title ?? ""}`);
    await code.run("View: Close All Editors");
    await ((await code.page.locator(".part.auxiliarybar").isVisible()) ? code.page.keyboard.press("Control+Alt+b") : undefined); // it leaves little width for a diff
    rmSync(join(code.work, "new.txt"), { force: true });
  });
  after(() => code.close());

  it("part/13 asks first what to do with changes that an undo would lose, and Enter loses none", async () => {
    await write();
    writeFileSync(join(code.work, "new.txt"), "mine\n");
    await code.chat.locator(".userMessage").first().hover();
    await code.chat.getByRole("button", { name: "Undo turn" }).first().click();
    await code.choose("Conversation and files");
    await code.page.locator(".monaco-dialog-box").waitFor();
    await code.page.keyboard.press("Enter");
    await code.page.locator(".tab", { hasText: "Changes of the turn" }).waitFor();
    assert.equal(readFileSync(join(code.work, "new.txt"), "utf8"), "mine\n");
  });

  it("part/13 shows no questions of other folders", async () => {
    for (const { decisionId } of open()) {
      code.call("decision/respond", { decisionId, choice: "reject" });
    }
    const away = join(code.dir, "away");
    mkdirSync(away);
    const { sessionId } = code.call<{ sessionId: string }>("session/new", { cwd: away });
    code.call("turn/start", { sessionId, input: [{ type: "text", text: "write it" }] });
    await until(() => open().some((decision) => decision.sessionId === sessionId));
    await code.newSession();
    await code.say("write it");
    await code.chat.locator("#asked .card").waitFor();
    await code.run("lashd: New Session");
    await code.page.locator(".notification-toast", { hasText: "new.txt?" }).waitFor(); // of this folder
    assert.equal(await code.page.locator(".notification-toast", { hasText: "new.txt?" }).count(), 1);
    assert.match(await code.page.locator("#lash\\.lashd\\.lashd\\.status").innerText(), /lashd: 1$/);
    open().forEach(({ decisionId }) => code.call("decision/respond", { decisionId, choice: "reject" }));
    await code.page.locator(".notification-toast", { hasText: "new.txt?" }).waitFor({ state: "detached" });
  });

  it("part/13 lists files without those that git or the settings leave out, and attaches one with @", async () => {
    code.write("work/node_modules/a/index.js", "");
    await code.newSession();
    await code.chat.getByRole("button", { name: "Attach" }).click();
    await code.page.locator(".quick-input-list .monaco-list-row", { hasText: "readme.txt" }).waitFor();
    assert.equal(await code.page.locator(".quick-input-list .monaco-list-row", { hasText: "index.js" }).count(), 0);
    await code.page.keyboard.press("Escape");
    await code.chat.locator("#composer textarea").pressSequentially("what is @read");
    await code.chat.getByRole("option", { name: /readme\.txt/ }).waitFor();
    await code.shot("mention");
    await code.chat.locator("#composer textarea").press("Enter");
    await code.chat.locator(".chip", { hasText: "readme.txt" }).waitFor();
    await code.chat.locator("#composer textarea").press("Enter");
    await code.chat.locator(".userMessage .quoted .chip", { hasText: "readme.txt" }).waitFor();
    await code.chat.locator(".userMessage", { hasText: "what is @readme.txt" }).waitFor();
  });

  it("part/13 colors code as the editor does, also after a change of the theme", async () => {
    code.write("work/sample.js", sample);
    await code.showFile("sample.js");
    await code.newSession(); // beside the file
    await code.say("show some code");
    for (const theme of ["Light Modern", "Dark Modern"] as const) {
      await chooseTheme(code, theme);
      await sameColors(code.page.locator(".monaco-editor .view-line"), code.chat.locator(".markdown pre code"), sample);
    }
  });

  it("part/13 runs a command of the chat", async () => {
    await code.newSession();
    await code.say("hi");
    await code.chat.locator(".agentMessage", { hasText: "Hello!" }).waitFor();
    await code.chat.locator("#composer textarea").pressSequentially("/ren");
    await code.chat.getByRole("option", { name: /rename/ }).click();
    await code.page.locator(".quick-input-widget:visible input.input").fill("named in the chat");
    await code.page.keyboard.press("Enter");
    await code.page.locator(".tab", { hasText: "named in the chat" }).waitFor();
  });

  it("part/13 shows a chat in the editor area and in the side bar, and finds it by a word of its answer", async () => {
    await code.newSession();
    await code.say("tell a story");
    await code.chat.locator(".agentMessage:not(.live)", { hasText: "finished the story." }).waitFor();
    const tab = code.page.locator(".tab", { hasText: "tell a story" });
    const side = () => chatIn(code.page, "auxiliarybar");
    const row = (title: string, selected: string) => code.page.locator(`.part.sidebar .monaco-list-row[aria-selected="${selected}"]`, { has: code.page.locator(".label-name", { hasText: new RegExp(`^${title.replace(/[()]/g, "\\$&")}$`) }) });
    await code.run("lashd: Open Chat in Side Bar");
    await tab.waitFor({ state: "detached" });
    await (await side()).locator(".agentMessage", { hasText: "finished the story." }).waitFor();
    await code.page.locator(".part.auxiliarybar .title", { hasText: "tell a story" }).first().waitFor(); // names the session
    await code.shot("side bar");
    await (await side()).getByRole("button", { name: /^Mode: / }).click();
    await code.quickInput.waitFor();
    await code.page.keyboard.press("Escape");
    await (await side()).locator("#composer textarea:focus").waitFor(); // not the editor
    await (await side()).locator("#head h1", { hasText: /^tell a story$/ }).waitFor();
    await code.say("hi", await side());
    await (await side()).locator(".agentMessage", { hasText: "Hello!" }).waitFor();
    await row("tell a story", "true").waitFor();
    await (await side()).getByRole("button", { name: "Fork here" }).last().click();
    await (await side()).locator(".row.fork", { hasText: "Forked from tell a story." }).waitFor();
    await (await side()).locator("#head h1", { hasText: /^tell a story \(fork\)$/ }).waitFor();
    await row("tell a story (fork)", "true").waitFor();
    await code.shot("fork in the side bar");
    await row("named in the chat", "false").click(); // opens where the user moved the last chat
    await (await side()).locator("#head h1", { hasText: /^named in the chat$/ }).waitFor();
    await row("tell a story", "false").click();
    await (await side()).locator("#head h1", { hasText: /^tell a story$/ }).waitFor();
    assert.equal(await code.page.locator(".tab").count(), 0);
    code.call("session/delete", { sessionId: code.call<SessionListResult>("session/list", {}).data.find(({ relation }) => relation.kind === "fork")?.sessionId });
    await code.run("lashd: Open Chat in Editor Area");
    await tab.waitFor();
    await (await chatIn(code.page, "editor")).locator(".agentMessage", { hasText: "Hello!" }).waitFor(); // its page takes the focus before that
    const field = (await side()).locator("#composer textarea"); // of no session yet
    await field.fill("hi beside the code");
    await field.press("Enter");
    await (await side()).locator(".agentMessage", { hasText: "Hello!" }).waitFor();
    assert.deepEqual(await code.page.locator(".tab").allInnerTexts().then((all) => all.map((text) => text.trim())), ["tell a story"]);
    await code.run("View: Close All Editors");
    await code.run("lashd: Find Session...");
    await code.page.locator('.quick-input-widget:visible input.input[placeholder^="Words of a title"]').fill("acknowledged");
    await code.page.locator(".quick-input-list .monaco-list-row", { hasText: "acknowledged" }).filter({ hasText: "tell a story" }).click();
    await code.page.locator(".tab", { hasText: "tell a story" }).waitFor();
  });

  it("part/13 says when a turn of a hidden chat ends, and shows it", async () => {
    await code.newSession();
    await code.say("write it");
    await code.chat.locator("#asked .card").waitFor();
    await code.run("View: Close All Editors");
    const asked = open().find(({ prompt }) => prompt.includes("new.txt"));
    code.call("decision/respond", { decisionId: asked?.decisionId, choice: "allowOnce", argsHash: asked?.argsHash }); // the turn ends after that
    const toast = code.page.locator(".notification-list-item", { hasText: '"write it" has finished its turn.' }); // also in the open list of notifications
    await toast.getByRole("button", { name: "Show" }).click();
    await code.chat.locator(".agentMessage", { hasText: "Written." }).waitFor();
  });

  it("part/13 says that there are no MCP servers yet", async () => {
    await code.run("lashd: MCP Servers...");
    await until(async () => (await code.page.locator(".quick-input-widget:visible input.input").getAttribute("placeholder"))?.startsWith("There are no MCP servers yet.") === true);
    await code.page.keyboard.press("Escape");
  });

  it("part/13 edits a selection after the user has seen the change", async () => {
    const field = code.page.locator(".quick-input-widget:visible input.input");
    await code.page.keyboard.press("Control+p");
    await field.fill("readme.txt");
    await code.choose("readme.txt");
    await code.page.locator(".monaco-editor .view-line", { hasText: "a workspace" }).click();
    await code.page.keyboard.press("Home");
    await code.page.keyboard.press("Shift+End");
    await code.page.keyboard.press("Control+Alt+i");
    await field.fill("say it loudly");
    await code.page.keyboard.press("Enter");
    assert.deepEqual(await diffLines(code.page, "A WORKSPACE"), { before: ["a workspace"], after: ["A WORKSPACE"] });
    await code.page.locator("#lash\\.lashd\\.lashd\\.choices", { hasText: "readme.txt (proposed): Ctrl+Enter applies" }).waitFor();
    await titleButton(code.page, "Apply Edit").waitFor();
    assert.equal(await code.page.locator(".notification-toast").count(), 0);
    await code.page.keyboard.press("Control+Enter");
    await code.page.locator(".monaco-diff-editor").waitFor({ state: "detached" });
    await code.page.locator(".monaco-editor .view-line", { hasText: "A WORKSPACE" }).first().waitFor();
    assert.equal(readFileSync(join(code.work, "readme.txt"), "utf8"), "a workspace\n"); // the user saves it
    await code.run("File: Revert File");
  });

  it("part/13 writes the message of a commit for what is staged", async () => {
    code.write("work/staged.txt", "staged line\n");
    git("add", "staged.txt");
    await code.run("Git: Refresh");
    await code.run("lashd: Write Commit Message");
    await code.page.locator('.activitybar .action-label[aria-label^="Source Control"]').click({ force: true }); // its badge covers it
    await code.page.locator(".scm-editor .view-line", { hasText: "readme: add a line" }).waitFor();
    assert.equal((await code.page.locator(".scm-editor .view-line").allInnerTexts()).join("").replaceAll("\u00a0", " "), "readme: add a line");
    await code.view();
  });
});
