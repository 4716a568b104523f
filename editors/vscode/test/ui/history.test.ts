import { strict as assert } from "node:assert";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { SessionListResult } from "../../src/protocol";
import { until } from "./browser";
import { goals } from "./goals";

/** Goals of a user who starts sessions, compacts one, and reads what the model is told. FLOWS=all runs them. */
describe("part13/7 new sessions, compaction and instructions in a real VS Code", function () {
  const code = goals(this, (window) => {
    window.write("work/AGENTS.md", "Use whole words in names.\n");
  });
  const sessions = () => code.call<SessionListResult>("session/list", {}).data;
  const rows = () => code.page.locator(".part.sidebar .monaco-list-row");

  it("shows no entry for a new session before its first message, and one new session at a time", async () => {
    await code.newSession();
    await code.run("lashd: New Session");
    await code.chat.locator("#welcome:not([hidden])").waitFor();
    assert.deepEqual([sessions().length, await code.page.locator(".tab", { hasText: "New session" }).count(), await rows().count()], [1, 1, 0]);
    await code.say("now it has a message");
    await code.answered("Hello!");
    await code.page.getByRole("treeitem", { name: /^now it has a message/ }).waitFor();
    await code.newSession();
    await code.chat.locator("#welcome:not([hidden])").waitFor();
    assert.equal(sessions().length, 2);
    await code.run("View: Close All Editors");
    await until(() => sessions().length === 1); // the closed one had no message
    assert.equal(sessions()[0]?.title, "now it has a message");
  });

  it("shows what a compaction keeps, and compacts after that", async () => {
    await code.newSession();
    for (const name of ["first", "second", "third"]) {
      await code.say(`${name} input\n${"some words ".repeat(1200)}`);
      await code.chat.locator(".row.end").nth(["first", "second", "third"].indexOf(name)).waitFor();
    }
    await code.field.fill("/compact the names of the files");
    await code.field.press("Enter");
    const card = code.chat.locator("#compaction .card");
    await card.getByText("Kept word for word").waitFor();
    await code.shot("compaction");
    assert.match(await card.innerText(), /Summarized 4 messages, about [\d.]+k tokens\s+first input\s+second input\s+Kept word for word 2 messages, about [\d.]+k tokens\s+third input/);
    assert.equal(await card.getByRole("textbox").inputValue(), "the names of the files");
    await card.getByRole("button", { name: "Cancel" }).click();
    await card.waitFor({ state: "detached" });
    assert.equal(await code.chat.locator(".row.compaction").count(), 0);
    await code.run("lashd: Compact History...");
    await card.getByRole("button", { name: "Compact", exact: true }).click();
    await code.chat.locator(".row.compaction", { hasText: "Older history was replaced by a summary." }).waitFor();
    await card.waitFor({ state: "detached" });
  });

  it("says that there is nothing to compact", async () => {
    await code.ask("hi");
    await code.answered("Hello!");
    await code.run("lashd: Compact History...");
    await code.chat.locator(".notice", { hasText: "There is nothing to compact: the history has about" }).waitFor();
  });

  it("lists the instructions of the model, opens one, and adds a line to the user's own", async () => {
    await code.newSession();
    await code.field.pressSequentially("/mem");
    await code.chat.getByRole("option", { name: /^\/memory/ }).click();
    const row = (text: string) => code.page.locator(".quick-input-list .monaco-list-row", { hasText: text });
    await row("AGENTS.md").filter({ hasText: "in each turn \u00b7 26 bytes" }).waitFor();
    await code.shot("instructions");
    await row("AGENTS.md").filter({ hasText: "in each turn" }).click();
    await code.page.locator(".monaco-editor .view-line", { hasText: "Use whole words in names." }).waitFor();
    await code.run("lashd: Instructions...");
    await code.choose("Add a line to your own instructions");
    await code.quickInput.fill("Answer in French.");
    await code.page.keyboard.press("Enter");
    await code.page.locator(".monaco-editor .view-line", { hasText: "- Answer in French." }).waitFor();
    assert.equal(readFileSync(join(code.home, "AGENTS.md"), "utf8"), "- Answer in French.\n");
    await code.run("lashd: Instructions...");
    await row("AGENTS.md").filter({ hasText: "in each turn \u00b7 20 bytes" }).waitFor();
  });
});
