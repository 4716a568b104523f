import { strict as assert } from "node:assert";
import type { Item } from "../../src/protocol";
import { chatPage } from "./chatPage";
import { commandQuestion, conversation, editQuestion } from "./gallery";

const said = (n: number): Item => ({ itemId: `nod_${n}:0`, kind: "agentMessage", status: "completed", atMs: n, turnId: "trn_1", text: `Answer ${n}.` });

describe("part13 the page of a chat in narrow and wide windows", function () {
  const chat = chatPage(this);
  const { tell, reset, drawn } = chat;
  const box = (selector: string) => chat.page.locator(selector).evaluate((e) => e.getBoundingClientRect().toJSON() as DOMRect);

  it("58 and 5 show the settings as icons in one row with Send at 300 pixels, and no cost", async () => {
    await chat.page.setViewportSize({ width: 300, height: 900 });
    await tell(conversation());
    const buttons = await chat.page.locator("#composer .bar button:visible").evaluateAll((all: HTMLElement[]) => all.map((one) => ({ name: one.ariaLabel ?? one.innerText, about: one.title, text: one.innerText.trim(), bottom: Math.round(one.getBoundingClientRect().bottom) })));
    assert.deepEqual(buttons.map(({ text }) => text).filter((text) => text !== ""), ["fake", "75%"]);
    assert.deepEqual(buttons.map(({ name }) => name), ["Attach", "Model: fake", "Effort: high", "Mode: Ask before edits", "Sandbox: No sandbox", "Context 75%", "Stop", "Steer", "Queue"]);
    assert.match(buttons[3]?.about ?? "", /^Mode: Ask before edits\. /);
    assert.ok(Math.max(...buttons.map(({ bottom }) => bottom)) - Math.min(...buttons.map(({ bottom }) => bottom)) < 8, "they are in one row");
    assert.equal(await chat.page.locator(".usage").isVisible(), false);
    await chat.page.setViewportSize({ width: 400, height: 900 });
    await drawn();
    assert.deepEqual((await chat.page.locator("#composer .bar button:visible").allInnerTexts()).filter((text) => text !== ""), ["fake", "Ask before edits", "75%"]);
    for (const width of [400, 500, 600, 700, 800]) {
      await chat.page.setViewportSize({ width, height: 900 });
      await drawn();
      assert.ok((await box("#composer .bar")).height < 32, `they are in one row at ${width} pixels`);
    }
    await chat.page.setViewportSize({ width: 900, height: 900 });
    await drawn();
    assert.deepEqual([await chat.page.locator(".usage").innerText(), await chat.page.getByRole("button", { name: "Mode: " }).innerText()], ["$0.0040", "Ask before edits"]);
  });

  it("58 show each answer to a question at 300 pixels, without a scroll bar in another", async () => {
    await chat.page.setViewportSize({ width: 300, height: 700 });
    await tell(conversation([editQuestion, commandQuestion]));
    await chat.page.getByRole("button", { name: "More\u2026" }).first().click();
    const reason = await chat.page.getByRole("button", { name: "Deny with a reason\u2026" }).first().boundingBox();
    const asked = await box("#asked");
    assert.ok(reason && reason.y >= asked.y && reason.y + reason.height <= asked.bottom, `${JSON.stringify(reason)} is not in ${JSON.stringify(asked)}`);
    const scrolling = await chat.page.locator("#asked, #asked *").evaluateAll((all: HTMLElement[]) => all.filter((one) => one.scrollHeight > one.clientHeight + 1 && getComputedStyle(one).overflowY === "auto").map((one) => one.id || one.className));
    assert.deepEqual(scrolling, ["asked"]);
  });

  it("61 cut the directory of a file before its name, and no line under a link", async () => {
    await chat.page.setViewportSize({ width: 300, height: 2000 });
    await tell(conversation([]));
    const call = chat.page.locator(".call", { hasText: "Edited total.ts" });
    const cut = (part: string) => call.locator(part).evaluate((e) => e.scrollWidth > Math.ceil(e.getBoundingClientRect().width));
    const ellipsis = () => call.locator(".about").evaluate((e) => {
      const text = document.createRange();
      text.selectNodeContents(e);
      return text.getBoundingClientRect().width > e.getBoundingClientRect().width;
    });
    assert.deepEqual([await cut(".rest"), await ellipsis()], [true, false]);
    const started = await chat.page.locator(".call", { hasText: "Started npm run dev" }).boundingBox();
    const link = await box(".taskLink");
    assert.ok(started && started.x + started.width <= link.x, `${JSON.stringify(started)} is under ${JSON.stringify(link)}`);
  });

  it("8 break no word of a question at 260 pixels", async () => {
    await chat.page.setViewportSize({ width: 260, height: 900 });
    await tell(conversation([editQuestion]));
    const rows = await chat.page.locator(".card .question b").evaluate((b) => {
      const range = document.createRange();
      const text = b.firstChild;
      range.setStart(text ?? b, b.textContent?.indexOf("src/") ?? 0);
      range.setEnd(text ?? b, b.textContent?.length ?? 0);
      return range.getClientRects().length;
    });
    assert.equal(rows, 1);
  });

  it("60 show a question right below a short conversation, and below the end of a long one", async () => {
    await chat.page.setViewportSize({ width: 1200, height: 1000 });
    await reset({ items: [said(1), said(2), said(3)], decisions: [commandQuestion], turnId: "trn_1" });
    const gap = async () => Math.round((await box("#asked .card")).top - (await box(".row:last-child")).bottom);
    await drawn();
    assert.ok((await gap()) < 50, `${await gap()} pixels are between them`);
    assert.equal(Math.round((await box("#composer")).bottom), 1000);
    await reset({ items: Array.from({ length: 200 }, (_, n) => said(n)), decisions: [commandQuestion], turnId: "trn_1" });
    await chat.page.getByText("Answer 199.").waitFor();
    await drawn();
    assert.ok((await gap()) < 50, `${await gap()} pixels are between them`);
    assert.ok((await box("#asked")).height >= (await box("#asked .card")).height, "the whole question is visible");
    assert.equal(Math.round((await box("#composer")).bottom), 1000);
  });
});
