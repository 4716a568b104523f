import { strict as assert } from "node:assert";
import type { SessionListResult } from "../../src/protocol";
import { until } from "./browser";
import { goals } from "./goals";
import { chatIn } from "./parts";

/** Goals of a user who finds, forks and drops. FLOWS=all runs them. */
describe("part/13 views and places in a real VS Code", function () {
  const code = goals(this);

  it("part13/vscode starts a session with the first input in an empty side bar, and stores none before", async () => {
    const sessions = () => code.call<SessionListResult>("session/list", {}).data.map(({ turnIndex }) => turnIndex);
    await code.run("View: Toggle Secondary Side Bar Visibility");
    const field = (await chatIn(code.page, "auxiliarybar")).locator("#composer textarea");
    await field.fill("hi");
    await code.shot("empty-side-bar");
    assert.deepEqual(sessions(), []);
    await field.press("Enter");
    await code.answered("Hello!");
    assert.deepEqual(sessions(), [1]);
    assert.equal(await code.page.locator(".tab").count(), 0);
    await code.page.keyboard.press("Control+Alt+b"); // close the side bar
  });

  it("opens a session that the search found at the message that matches", async () => {
    await code.ask("a first input\nwith the word zebra");
    await code.answered("Hello!");
    for (let turn = 0; turn < 8; turn++) {
      await code.say(`another input ${turn}\n${"and a line\n".repeat(8)}`);
      await code.chat.locator(".userMessage", { hasText: `another input ${turn}` }).waitFor();
      await until(async () => (await code.chat.locator("#state").innerText()) === "");
    }
    assert.equal(await code.chat.locator(".userMessage", { hasText: "zebra" }).isVisible(), false);
    await code.run("View: Close All Editors");
    await code.run("lashd: Find Session...");
    await code.quickInput.fill("zebra");
    await code.page.locator(".quick-input-list .monaco-list-row", { hasText: "zebra" }).filter({ hasText: "with the word" }).first().click();
    const row = code.chat.locator(".row", { hasText: "zebra" });
    await row.waitFor();
    await until(() => row.evaluate((element) => element.contains(document.activeElement) && element.getBoundingClientRect().top >= 0));
  });

  it("opens the fork of a chat in the side bar there", async () => {
    await code.ask("tell a story");
    await code.answered("finished the story.");
    await code.run("lashd: Open Chat in Side Bar");
    await code.page.locator(".tab", { hasText: "tell a story" }).waitFor({ state: "detached" });
    await code.answered("finished the story.");
    await code.chat.locator(".row.end").hover();
    await code.chat.getByRole("button", { name: "Fork here" }).click();
    await until(async () => (await code.page.getByRole("treeitem", { name: /^tell a story/ }).count()) === 2);
    await code.chat.locator(".agentMessage", { hasText: "finished the story." }).waitFor();
    assert.equal(await code.page.locator(".tab").count(), 0);
    await code.page.keyboard.press("Control+Alt+b"); // close the side bar
  });

  it("attaches a file that is dropped from the Explorer by its path in the workspace", async () => {
    await code.newSession();
    await code.page.locator('.activitybar .action-label[aria-label^="Explorer"]').click();
    const file = code.page.locator(".explorer-folders-view .monaco-list-row", { hasText: "wrong.json" });
    await file.hover();
    await code.page.mouse.down();
    await code.page.keyboard.down("Shift");
    await code.page.mouse.move(800, 300, { steps: 10 });
    await code.page.mouse.move(800, 420, { steps: 10 });
    await code.page.mouse.up();
    await code.page.keyboard.up("Shift");
    const chip = code.chat.locator(".chips .chip");
    await chip.waitFor();
    assert.equal((await chip.innerText()).trim(), "wrong.json");
    await code.view();
  });
});
