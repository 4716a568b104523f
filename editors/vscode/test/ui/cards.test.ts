import { strict as assert } from "node:assert";
import { chatPage } from "./chatPage";

describe("part/13 the cards of a chat", function () {
  const chat = chatPage(this);
  const { tell, reset, asked } = chat;

  it("part/13 has the seldom answers of a question below the others, for the keyboard, too", async () => {
    const why = { by: "mode", text: "The mode asks." };
    const decision = { decisionId: "dec_1", sessionId: "ses_1", kind: "approval", prompt: "May it?", choices: ["allowOnce", "allowSession", "allowAlways", "reject"], default: "reject", openedAtMs: 1, deadlineAtMs: 0, call: { callId: "c", name: "shell", args: { command: "npm test" } }, detail: { command: { command: "npm test", dir: "/work" }, why, editable: true } };
    await reset({ decisions: [decision] });
    const shown = () => chat.page.locator(".card .answers button:visible").allInnerTexts();
    const few = ["Allow once", "Deny", "More\u2026"];
    assert.deepEqual(await shown(), few);
    const more = chat.page.getByRole("button", { name: "More\u2026", expanded: false });
    await more.focus();
    await chat.page.keyboard.press("Enter");
    assert.deepEqual(await shown(), [...few, "Allow for this session", "Always allow", "Edit\u2026", "Deny with a reason\u2026"]);
    await chat.page.keyboard.press("Tab");
    assert.equal(await chat.page.evaluate(() => document.activeElement?.textContent), "Allow for this session");
    await chat.page.keyboard.press("Escape");
    assert.deepEqual([await shown(), await more.evaluate((button) => button === document.activeElement)], [few, true]);
  });

  it("part13/27 says something above the input until the user answers it; a line without buttons goes with the next input", async () => {
    await reset();
    await tell({ type: "notice", id: 1, text: "Restored 1 file.", buttons: ["Revert"] });
    await tell({ type: "notice", id: 2, text: "/init has run.", buttons: [] });
    const shown = () => chat.page.locator(".notice > span").allInnerTexts();
    assert.deepEqual(await shown(), ["Restored 1 file.", "/init has run."]);
    const [field, notice] = [await chat.page.locator("#composer textarea").boundingBox(), await chat.page.locator(".notice").last().boundingBox()];
    assert.ok(field && notice && notice.y + notice.height <= field.y, "the notice covers the input");
    await tell({ type: "sent", ok: true });
    assert.deepEqual(await shown(), ["Restored 1 file."]);
    await chat.page.getByRole("button", { name: "Revert" }).click();
    assert.deepEqual([await shown(), await asked("noticed")], [[], [{ type: "noticed", id: 2 }, { type: "noticed", id: 1, button: "Revert" }]]);
    assert.equal(await chat.page.evaluate(() => document.activeElement?.tagName), "TEXTAREA");
  });

  it("part13/27 has the buttons of a long notice below its text in a narrow side bar", async () => {
    await chat.page.setViewportSize({ width: 296, height: 700 });
    await reset();
    await tell({ type: "notice", id: 1, text: "weather failed: the program ended: exit status 1.", buttons: ["Show MCP Servers"] });
    const [text, button] = [await chat.page.locator(".notice > span").boundingBox(), await chat.page.getByRole("button", { name: "Show MCP Servers" }).boundingBox()];
    assert.ok(text && button && button.y >= text.y + text.height && text.width > 200, JSON.stringify([text, button]));
  });

  it("part/13 sends one answer for a double click, and another one if the first has failed", async () => {
    const decision = { decisionId: "dec_1", sessionId: "ses_1", kind: "approval", prompt: "May it?", choices: ["allowOnce", "reject"], default: "reject", openedAtMs: 1, deadlineAtMs: 0 };
    await reset({ decisions: [decision] });
    const answers = () => chat.page.evaluate(() => window.asked.filter((message) => message.type === "answer").length);
    await chat.page.getByRole("button", { name: "Allow once" }).dblclick();
    assert.equal(await answers(), 1);
    await tell({ type: "failed", message: "the disk is full" });
    await chat.page.getByRole("button", { name: "Allow once" }).click();
    assert.equal(await answers(), 2);
  });

  it("part13 shows characters that would hide a part of what a person approves", async () => {
    const why = { by: "mode", text: "The mode asks." };
    const of = (decisionId: string, detail: object, args: object) => ({ decisionId, sessionId: "ses_1", kind: "approval", prompt: "May it?", choices: ["allowOnce", "reject"], default: "reject", openedAtMs: 1, deadlineAtMs: 0, call: { callId: "c", name: "shell", args }, detail: { why, ...detail } });
    const command = "echo \u202e# \u2066 ok\u001b[2K\nrm x";
    const hunks = [{ oldStart: 1, oldLines: 1, newStart: 1, newLines: 2, text: "-a\r\n+b\r\n+if admin\u202e {\r\n" }];
    await reset({ decisions: [of("dec_1", { command: { command, dir: "/work\u202e" } }, { command }), of("dec_2", { files: [{ path: "a.ts", kind: "change", added: 2, removed: 1, hunks }] }, {}), of("dec_3", {}, { title: "x\u202ey" })] });
    const cards = chat.page.locator(".card");
    const text = async (at: number, part: string) => (await cards.nth(at).locator(part).first().textContent()) ?? "";
    const check = async () => {
      assert.equal(await text(0, ".command"), "echo \\u202e# \\u2066 ok\\u001b[2K\nrm x");
      assert.match(await text(0, ".facts"), /^in \/work\\u202e/);
      assert.match(await text(1, ".diff"), /- a\r\n.*\+ b\r\n.*\+ if admin\\u202e \{\r\n/s);
      assert.equal(await text(2, "details .facts"), "title: x\\u202ey");
    };
    await check();
    for (const { id, code } of await asked("highlight")) {
      await tell({ type: "highlighted", id, lines: code.split(/\r?\n/).map((line) => [[line, "#ff0000"]]) });
    }
    assert.ok((await cards.nth(0).locator(".command .token").count()) > 0, "the command has colors");
    assert.equal(await text(0, ".command"), "echo \\u202e# \\u2066 ok\\u001b[2K\nrm x");
  });

  it("part13/7 shows what a compaction keeps, and starts it with what the summary must keep", async () => {
    await reset({});
    const preview = { compacts: true, tokens: 12_000, tokensAfter: 3000, keeps: 20_000, summarized: { messages: 14, tokens: 9000, inputs: ["a", "b", "c", "d", "e", "f"], moreInputs: 2 }, kept: { messages: 2, tokens: 3000, inputs: ["newest"] } };
    await tell({ type: "compaction", preview, instructions: "the names" });
    const card = chat.page.locator("#compaction .card");
    assert.match(await card.innerText(), /about 12k tokens. Afterwards it has about 3k and the summary/);
    assert.deepEqual(await card.locator(".parts > div").allInnerTexts().then((all) => all.map((text) => text.split(/\s*\n\s*/))), [["Summarized 14 messages, about 9k tokens", "3 earlier inputs", "b", "c", "d", "e", "f"], ["Kept word for word 2 messages, about 3k tokens", "newest"]]);
    await chat.page.keyboard.press("Enter"); // Compact has the focus
    assert.deepEqual(await asked("compact"), [{ type: "compact", instructions: "the names" }]);
    await card.getByRole("button", { name: "Compacting\u2026" }).waitFor();
    await tell({ type: "compacted", ok: false });
    await card.getByRole("button", { name: "Compact", exact: true }).click();
    await tell({ type: "compacted", ok: true });
    assert.deepEqual([await card.count(), await chat.page.evaluate(() => document.activeElement?.tagName)], [0, "TEXTAREA"]);
    await tell({ type: "compaction", preview, instructions: "" });
    await card.getByRole("button", { name: "Cancel" }).click();
    assert.deepEqual([await card.count(), await chat.page.evaluate(() => window.asked.filter((message) => message.type === "compact").length)], [0, 2]);
  });
});
