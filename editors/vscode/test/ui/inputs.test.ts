import { strict as assert } from "node:assert";
import type { SessionListResult, StatusResult } from "../../src/protocol";
import { dropFile, until } from "./browser";
import { goals } from "./goals";

/** Goals of a user who writes, attaches and takes back. FLOWS=all runs them. */
describe("part/13 inputs in a real VS Code", function () {
  const code = goals(this, (window) => {
    window.write("work/lib/greet.ts", "const noise = 1;\nexport function greetPeople(name: string) {\n  return name + noise;\n}\n");
    window.write("config/lashd/plugins/team/skills/tidy/SKILL.md", "---\ndescription: Tidy the imports\n---\nSort the imports by name.\n");
    window.write("config/lashd/plugins/team/commands/changelog.md", "---\ndescription: Write the changelog\nargument-hint: version\n---\nWrite what changed in $1.\n");
  });

  /** attached waits for the text of the only attachment of the last input. */
  const attached = async (text: string) => {
    await code.chat.locator(".userMessage .quoted summary").click();
    assert.equal((await code.chat.locator(".userMessage .quoted pre").innerText()).trim(), text);
  };

  it("stops a turn with Escape", async () => {
    await code.ask("tell a story");
    await code.chat.locator(".agentMessage", { hasText: "promised" }).waitFor();
    await code.chat.locator("#state", { hasText: "Working" }).waitFor();
    await code.field.press("Escape");
    await code.chat.locator(".row.end", { hasText: "Stopped." }).waitFor();
    await until(async () => (await code.chat.locator("#state").innerText()) === "");
  });

  it("edits an input that waits in the queue", async () => {
    await code.ask("tell a story");
    await code.chat.locator("#state", { hasText: "Working" }).waitFor();
    await code.say("then this");
    await code.chat.locator(".queued", { hasText: "then this" }).getByRole("button", { name: "Edit", exact: true }).click();
    await code.chat.locator(".queued").waitFor({ state: "detached" });
    assert.equal(await code.field.inputValue(), "then this");
  });

  it("undoes a message that steered a turn, and keeps what came before it", async () => {
    await code.ask("tell a story");
    await code.chat.locator(".agentMessage", { hasText: "promised" }).waitFor();
    await code.field.fill("and hi");
    await code.field.press("Control+Enter");
    await code.answered("Hello!");
    await code.chat.locator(".userMessage", { hasText: "and hi" }).hover();
    await code.chat.getByRole("button", { name: "Undo from here" }).click();
    assert.match(await code.dialog("Undo"), /Files do not change/);
    await code.chat.locator(".userMessage", { hasText: "and hi" }).waitFor({ state: "detached" });
    await code.answered("finished the story.");
    assert.equal(await code.field.inputValue(), "and hi");
  });

  it("keeps a draft while another chat is in front", async () => {
    await code.newSession();
    await code.say("first chat");
    await code.answered("Hello!");
    await code.field.fill("a thought");
    await code.run("lashd: New Session");
    await code.chat.locator("#welcome:not([hidden])").waitFor();
    await code.page.locator(".tab", { hasText: "first chat" }).click();
    await code.answered("Hello!");
    assert.equal(await code.field.inputValue(), "a thought");
  });

  it("goes back to the input of another session of the folder", async () => {
    await code.ask("an input to find again");
    await code.answered("Hello!");
    await code.newSession();
    await code.field.press("ArrowUp");
    await until(async () => (await code.field.inputValue()) === "an input to find again");
  });

  it("starts from an example, and from a recent session", async () => {
    await code.ask("a recent session");
    await code.answered("Hello!");
    await code.newSession();
    await code.chat.getByRole("button", { name: "Review my changes" }).click();
    assert.match(await code.field.inputValue(), /^Review the changes that are not committed yet/);
    await code.chat.getByRole("button", { name: "a recent session" }).click();
    await code.chat.locator(".userMessage", { hasText: "a recent session" }).waitFor();
  });

  it("starts a session with its shortcut", async () => {
    const count = () => code.call<SessionListResult>("session/list", {}).data.length;
    const before = count();
    await code.page.keyboard.press("Control+Alt+n");
    await code.chat.locator("#welcome:not([hidden])").waitFor();
    assert.equal(count(), before + 1);
  });

  it("attaches a folder as the list of its files", async () => {
    await code.newSession();
    await code.mention("src", /^src/);
    await code.chat.locator(".chip", { hasText: "src/" }).waitFor();
    await code.field.press("Enter");
    await code.chat.locator(".userMessage .quoted summary").click();
    await code.chat.locator(".userMessage", { hasText: "src/one.txt\nsrc/two.txt" }).waitFor();
  });

  it("attaches the problems that the editor shows", async () => {
    await code.showFile("wrong.json");
    await code.page.locator(".monaco-editor .squiggly-error").first().waitFor();
    await code.newSession();
    await code.mention("prob", /^problems/);
    await code.chat.locator(".chip", { hasText: "problems" }).waitFor();
    await code.field.press("Enter");
    await code.chat.locator(".userMessage .quoted summary").click();
    await code.chat.locator(".userMessage", { hasText: "wrong.json:1:7: error: Value expected" }).waitFor();
  });

  it("attaches the selection", async () => {
    await code.showFile("two.txt");
    await code.page.keyboard.press("Control+Home");
    await code.page.keyboard.press("Shift+End");
    await code.newSession();
    await code.mention("sel", /^selection/);
    await code.chat.locator(".chip", { hasText: "src/two.txt:1" }).waitFor();
    await code.field.press("Enter");
    await code.chat.locator(".userMessage .quoted summary", { hasText: "1 line" }).click();
    await code.chat.locator(".userMessage pre", { hasText: "first" }).waitFor();
  });

  it("attaches a symbol", async () => {
    await code.showFile("greet.ts");
    await code.page.locator(".monaco-editor .view-line", { hasText: /name.\+.noise/ }).click();
    await code.page.locator(".monaco-breadcrumb-item", { hasText: "greetPeople" }).waitFor(); // the language server is ready
    await code.newSession();
    await code.mention("greetP", /^greetPeople/);
    await code.chat.locator(".chip", { hasText: "greetPeople(), lib/greet.ts:2-4" }).waitFor();
    await code.field.press("Enter");
    await attached("export function greetPeople(name: string) {\n  return name + noise;\n}");
  });

  it("attaches the output of the last command of a terminal", async () => {
    await code.run("Terminal: Create New Terminal");
    const terminal = code.page.locator(".terminal-wrapper.active");
    await terminal.locator(".terminal-command-decoration").first().waitFor(); // the shell reports its commands
    const line = (text: RegExp) => terminal.locator(".xterm-rows > div", { hasText: text }).waitFor();
    await code.page.keyboard.type('read -p "how many? " n; echo $((n + 2)) apples');
    await code.page.keyboard.press("Enter");
    await line(/^how many\?/); // VS Code passes on no output of a command that ends at once
    await code.page.keyboard.type("40");
    await code.page.keyboard.press("Enter");
    await line(/^42 apples/);
    await code.newSession();
    await code.mention("term", /^terminal/);
    await code.chat.locator(".chip", { hasText: "read -p" }).waitFor();
    await code.field.press("Enter");
    await attached('$ read -p "how many? " n; echo $((n + 2)) apples\nhow many? 40\n42 apples');
    await code.run("Terminal: Kill All Terminals");
  });

  it("attaches a file that is dropped from another program", async () => {
    await code.newSession();
    await dropFile(code.field, "notes.txt", "dropped words\n");
    await code.chat.locator(".chip", { hasText: "notes.txt" }).waitFor();
    await code.say("what is this?");
    await attached("dropped words");
  });

  it("attaches a file that is dragged from the explorer with Shift", async () => {
    await code.run("View: Show Explorer");
    await code.run("lashd: New Session");
    await code.chat.locator("#welcome:not([hidden])").waitFor();
    const file = code.page.locator(".explorer-folders-view .monaco-list-row", { hasText: "readme.txt" });
    await file.hover();
    await code.page.mouse.down();
    await code.page.keyboard.down("Shift");
    const box = await code.field.boundingBox();
    assert.ok(box);
    await code.page.mouse.move(box.x + 20, box.y + 10, { steps: 10 });
    await code.page.mouse.up();
    await code.page.keyboard.up("Shift");
    await code.chat.locator(".chip", { hasText: "readme.txt" }).waitFor();
    await code.say("what is this?");
    await attached("a workspace");
  });

  it("runs a skill and a command of a plugin, which the model gets", async () => {
    for (const { typed, option, more, given } of [
      { typed: "/team:t", option: /^\/team:tidy Tidy the imports/, more: "", given: "Sort the imports by name." },
      { typed: "/team:ch", option: /^\/team:changelog Write the changelog\s*version/, more: "1.2", given: "Write what changed in 1.2." },
    ]) {
      await code.newSession();
      await code.field.pressSequentially(typed);
      await code.chat.getByRole("option", { name: option }).click();
      await code.field.pressSequentially(more);
      await code.field.press("Enter");
      await code.answered("Hello!");
      await code.chat.locator(".row.addedText summary").click();
      await code.chat.locator(".row.addedText", { hasText: given }).waitFor();
    }
  });

  it("changes the model and the mode by commands of the chat", async () => {
    await code.newSession();
    await code.field.pressSequentially("/model");
    await code.field.press("Enter");
    await code.choose("careful");
    await code.chat.getByRole("button", { name: "Model: careful" }).waitFor();
    await code.field.pressSequentially("/mode");
    await code.chat.getByRole("option", { name: /^\/mode Choose what lashd asks about/ }).click();
    await code.choose("Plan");
    await code.chat.getByRole("button", { name: "Mode: Plan" }).waitFor();
  });

  it("restarts the daemon from the status bar, and goes on in the same chat", async () => {
    await code.ask("before the restart");
    await code.answered("Hello!");
    const { pid } = code.call<StatusResult>("server/status", {});
    await code.status("check").click();
    await code.choose("Restart daemon");
    await until(() => code.call<StatusResult>("server/status", {}).pid !== pid);
    await until(async () => (await code.chat.locator("#state").innerText()) === "");
    await code.say("after it");
    await code.chat.locator(".agentMessage").nth(1).waitFor();
  });
});
