import { strict as assert } from "node:assert";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { SessionListResult } from "../../src/protocol";
import { until } from "./browser";
import { goals } from "./goals";
import { chatIn } from "./parts";

/** Commands that users of other agents type. FLOWS=all runs them. */
describe("part/13 commands of the chat in a real VS Code", function () {
  const code = goals(this, (window) => {
    window.write("config/lashd/plugins/notes/.claude-plugin/plugin.json", JSON.stringify({ name: "notes", description: "Notes." }));
    window.write("config/lashd/plugins/notes/commands/greet.md", "---\ndescription: Greets somebody\nargument-hint: NAME\n---\nGreet $ARGUMENTS.\n");
  });
  const sessions = () => code.call<SessionListResult>("session/list", {}).data;
  const type = async (text: string) => {
    await code.field.fill(text);
    await code.chat.locator("#composer button.first:enabled").waitFor();
    await code.field.press("Escape"); // the list of suggestions
    await code.field.press("Enter");
  };

  it("/clear starts a session in the place of the chat, and keeps the one before in the list", async () => {
    await code.ask("an input to keep");
    await code.answered("Hello!");
    const before = sessions().length;
    await type("/clear");
    await code.chat.locator("#welcome:not([hidden])").waitFor();
    await code.page.locator(".tab", { hasText: "an input to keep" }).waitFor({ state: "detached" });
    assert.equal(await code.page.locator(".tab").count(), 1);
    assert.equal(sessions().length, before + 1);
    assert.ok(sessions().some(({ title }) => title === "an input to keep"));
  });

  it("/undo takes back the newest turn with its files, and puts its input back", async () => {
    await code.ask("write two files");
    await code.chat.getByRole("button", { name: "Allow once" }).click();
    await code.answered("Written.");
    await type("/undo");
    await code.choose("Conversation and files");
    await code.dialog("Undo");
    await until(() => !existsSync(join(code.work, "one.ts")));
    await until(async () => (await code.field.inputValue()) === "write two files");
  });

  it("/help lists the commands, and puts one that goes with a text into the input", async () => {
    await code.newSession();
    await type("/help");
    await code.page.locator(".quick-input-list .monaco-list-row", { hasText: "/new" }).filter({ hasText: "also /clear" }).waitFor();
    await code.quickInput.fill("greet");
    await code.choose("/notes:greet");
    await until(async () => (await code.field.inputValue()) === "/notes:greet ");
  });

  it("/login sets up a provider", async () => {
    await code.newSession();
    await type("/login");
    await code.page.locator(".quick-input-list .monaco-list-row", { hasText: "Anthropic" }).first().waitFor();
    await code.page.keyboard.press("Escape");
  });

  it("completes a later part of a name, and does not send an unknown command silently", async () => {
    await code.newSession();
    await code.field.pressSequentially("/gre");
    await code.chat.getByRole("option", { name: "/notes:greet Greets somebody NAME" }).waitFor();
    await type("/greet Bob");
    await code.chat.getByRole("alert").filter({ hasText: "There is no command /greet." }).waitFor();
    assert.equal(await code.chat.locator(".userMessage").count(), 0);
    await code.chat.getByRole("button", { name: "Use /notes:greet" }).click();
    assert.equal(await code.field.inputValue(), "/notes:greet Bob");
    await type("/tmp is full");
    await code.chat.getByRole("button", { name: "Send as text" }).click();
    await code.chat.locator(".userMessage", { hasText: "/tmp is full" }).waitFor();
    await type("//etc too");
    await code.chat.locator(".userMessage", { hasText: /^\/etc too/ }).waitFor();
  });

  it("acts on the chat in which it is typed, not on the active tab", async () => {
    await code.ask("in a tab");
    await code.answered("Hello!");
    await code.ask("in the side bar");
    await code.answered("Hello!");
    await code.run("lashd: Open Chat in Side Bar");
    await code.page.locator(".tab", { hasText: "in the side bar" }).waitFor({ state: "detached" });
    await code.answered("Hello!"); // its page takes the focus before that
    await code.page.locator(".tab.active", { hasText: "in a tab" }).waitFor();
    const side = await chatIn(code.page, "auxiliarybar");
    const field = side.locator("#composer textarea");
    await side.locator(".agentMessage", { hasText: "Hello!" }).waitFor();
    await field.fill("/rename the one in the side bar");
    await side.locator("#composer button.first:enabled").waitFor();
    await field.press("Enter");
    await until(() => sessions().some(({ title }) => title === "the one in the side bar"));
    assert.ok(!sessions().some(({ title }) => title === "in the side bar"));
    await code.page.keyboard.press("Control+Alt+b"); // close the side bar
  });
});
