import { strict as assert } from "node:assert";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { SessionListResult, TurnListResult, TurnTraceResult } from "../../src/protocol";
import { violations } from "./axe";
import { until } from "./browser";
import { unreadable } from "./contrast";
import { goals } from "./goals";
import { chooseTheme, themes } from "./themes";

/** Goals of a user who reads answers and answers questions. FLOWS=all runs them. */
describe("part/13 answers and questions in a real VS Code", function () {
  const code = goals(this);

  it("opens the file and line that an answer names", async () => {
    await code.ask("where is it?");
    await code.chat.locator("a.place", { hasText: "src/two.txt:2" }).click();
    await code.page.locator(".monaco-editor .view-line", { hasText: "second" }).waitFor();
    await code.page.locator("#status\\.editor\\.selection", { hasText: "Ln 2, Col 1" }).waitFor();
  });

  it("reads headings, quotes, tasks, tables and code of an answer as such", async () => {
    await code.ask("some markdown");
    await code.answered("Result");
    const shown = (selector: string) => code.chat.locator(`.markdown ${selector}`).allInnerTexts();
    assert.deepEqual([await shown("h1"), await shown("blockquote p"), await shown("li.task"), await shown("th"), await shown("td"), await shown("pre code")], [["Result"], ["quoted"], ["first", "second"], ["a", "b"], ["1", "2"], ["func main() {}\n"]]);
    assert.deepEqual(await code.chat.locator("li.task [role=img]").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label"))), ["done", "open"]);
  });

  it("copies the code of an answer", async () => {
    await code.ask("some markdown");
    await code.answered("Result");
    await code.chat.locator(".markdown pre").hover();
    await code.chat.getByRole("button", { name: "Copy" }).click();
    await code.field.click();
    await code.page.keyboard.press("Control+v");
    await until(async () => (await code.field.inputValue()).trim() === "func main() {}");
  });

  it("allows a command for the session, and is not asked again", async () => {
    await code.ask("run it twice");
    await code.card.getByRole("button", { name: "More\u2026" }).click();
    await code.card.getByRole("button", { name: "Allow for this session" }).click();
    await code.card.getByRole("button", { name: "Allow", exact: true }).click();
    await code.answered("Both ran.");
    assert.equal(await code.chat.locator(".toolCall .completed").count(), 2);
    const [session] = code.call<SessionListResult>("session/list", { limit: 1 }).data;
    const [turn] = code.call<TurnListResult>("turn/list", { sessionId: session?.sessionId }).data;
    const asked = code.call<TurnTraceResult>("turn/trace", { turnId: turn?.turnId }).data.filter(({ type }) => type === "decision/opened");
    assert.equal(asked.length, 1, "the second call opens no question");
  });

  it("allows a long command in a notification that shows all of it", async () => {
    await code.ask("a long command");
    await code.card.waitFor();
    await code.run("lashd: New Session");
    const shown = code.toast("Run this command?");
    await shown.waitFor();
    const text = shown.locator(".notification-list-item-message");
    await until(async () => (await text.innerText()).includes("end > long-output.txt"));
    assert.ok(await text.evaluate((e) => e.scrollWidth <= e.clientWidth + 1 && e.getBoundingClientRect().height > 60), "the text is cut");
    await shown.getByText("Allow once").click();
    await until(() => existsSync(join(code.work, "long-output.txt")) && /word end\n$/.test(readFileSync(join(code.work, "long-output.txt"), "utf8")));
  });

  it("dismisses a notification, and answers in the chat later", async () => {
    await code.ask("a long command");
    await code.card.waitFor();
    const asked = code.page.locator(".tab", { hasText: "a long command" });
    await code.run("lashd: New Session");
    await code.toast("Run this command?").getByRole("button", { name: "Dismiss" }).click();
    await code.toast("Run this command?").waitFor({ state: "detached" });
    assert.equal(code.decisions().length, 1);
    await asked.click();
    await code.card.getByRole("button", { name: "Deny", exact: true }).click();
    await until(() => code.decisions().length === 0);
  });

  it("answers a question from the command palette", async () => {
    await code.ask("a long command");
    await code.card.waitFor();
    await code.run("lashd: Answer Question...");
    await code.choose("Deny");
    await code.card.waitFor({ state: "detached" });
    await code.chat.locator(".toolCall .failed").first().waitFor();
  });

  it("allows a command with the keyboard alone", async () => {
    await code.ask("a long command");
    await code.card.waitFor();
    await code.field.press("Alt+y");
    await code.answered("It ran.");
  });

  it("makes only one of two new files", async () => {
    await code.ask("make two files");
    await code.card.locator(".diff").nth(1).waitFor();
    assert.deepEqual(await code.card.locator(".diff .added code").allInnerTexts().then((all) => all.map((text) => text.trim())), ["export const one = 1;", "export const two = 1;"]);
    await code.card.getByRole("checkbox").nth(1).uncheck();
    await code.card.getByRole("button", { name: "Allow 1 of 2 changes" }).click();
    await code.answered("Written.");
    assert.deepEqual([existsSync(join(code.work, "one.ts")), existsSync(join(code.work, "two.ts"))], [true, false]);
  });

  it("opens a proposed file in the diff editor before it exists", async () => {
    await code.ask("make two files");
    await code.card.getByRole("button", { name: "Open diff" }).first().click();
    await code.page.locator(".monaco-diff-editor .modified .view-line", { hasText: /export.const.one.=.1;/ }).waitFor();
    assert.equal(existsSync(join(code.work, "one.ts")), false);
  });

  it("reads the reasoning of a model", async () => {
    await code.ask("think");
    await code.answered("So it is.");
    assert.equal(await code.chat.locator(".reasoning .markdown").count(), 0);
    await code.chat.locator(".reasoning summary").click();
    await code.chat.locator(".reasoning .markdown", { hasText: "Because of this." }).waitFor();
  });

  it("has no violation of axe and no text of too little contrast in the webview", async () => {
    await code.ask("some markdown");
    await code.answered("Result");
    await code.say("make two files");
    await code.card.waitFor();
    for (const theme of ["Dark High Contrast", "Dark Modern"] as const) {
      await chooseTheme(code, theme);
      const body = code.chat.locator(`body.${themes[theme]}`);
      const frame = await (await body.elementHandle())?.ownerFrame();
      assert.ok(frame, "the page has a frame");
      assert.deepEqual(await violations(frame), [], theme);
      let bad = await unreadable(body);
      await until(async () => (bad = await unreadable(body)).length === 0).catch(() => assert.deepEqual(bad, [], theme)); // the colors of code follow
    }
  });

  it("finds a word in a chat", async () => {
    await code.ask("some markdown");
    await code.answered("Result");
    await code.field.press("Control+f");
    await code.page.locator(".simple-find-part.visible input").first().fill("quoted");
    await until(async () => (await code.chat.locator("body").evaluate(() => getSelection()?.toString())) === "quoted");
  });
});
