import { strict as assert } from "node:assert";
import type { Browser, Page } from "playwright-core";
import type { ToWebview } from "../../src/chat/messages";
import { snapshot } from "../../src/model/session";
import type { Item } from "../../src/protocol";
import { attached } from "../unit/turn";
import { launch, openPage, patienceMs } from "./browser";

describe("issue/6-1 the inputs that wait", function () {
  this.timeout(2 * patienceMs);
  let browser: Browser;
  let page: Page;

  before(async () => {
    browser = await launch();
  });
  after(() => browser.close());

  beforeEach(async () => {
    page = await openPage(browser);
  });
  afterEach(() => page.close());

  const tell = (message: ToWebview) => page.evaluate((m) => window.dispatchEvent(new MessageEvent("message", { data: m })), message);
  const reset = (items: Item[], more = {}) => tell({ type: "reset", view: { ...snapshot({ ...attached, items }), ...more }, options: { sendOnEnter: true, showReasoning: false }, connected: true, left: {} });

  it("shows queued inputs and removes them", async () => {
    const queue = [{ inputId: "inp_2", turnId: "trn_2", state: "queued", input: [{ type: "text", text: "later" }], atMs: 1 }];
    await reset([], { queue, turnId: "trn_1" });
    await page.locator(".queued", { hasText: "Queued" }).filter({ hasText: "later" }).waitFor();
    await page.getByRole("button", { name: "Edit", exact: true }).click();
    assert.equal(await page.locator("#composer textarea").inputValue(), "later");
    assert.deepEqual(await page.evaluate(() => window.asked.filter((message) => message.type === "withdraw")), [{ type: "withdraw", inputId: "inp_2" }]);
  });

  it("part/13 removes a queued input with one press, also while an answer grows between press and release", async () => {
    const queue = [{ inputId: "inp_2", turnId: "trn_2", state: "queued", input: [{ type: "text", text: "later" }], atMs: 1 }];
    await reset([], { queue, turnId: "trn_1" });
    const used = { input: 5, output: 1, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
    await page.locator(".queued").getByRole("button", { name: "Remove" }).hover();
    await page.mouse.down();
    await tell({ type: "events", events: [{ type: "usage/updated", seq: 1, atMs: 1, usage: used, total: used } as never] });
    await page.getByText("5 tokens in").waitFor();
    await page.mouse.up();
    assert.deepEqual(await page.evaluate(() => window.asked.filter((message) => message.type === "withdraw")), [{ type: "withdraw", inputId: "inp_2" }]);
  });

  it("part/13 edits a queued input with its picture", async () => {
    const attachment = { name: "shot.png", type: "image/png", digest: "sha256:1" };
    const queue = [{ inputId: "inp_2", turnId: "trn_2", state: "queued", input: [{ type: "attachment", attachment }, { type: "text", text: "look" }], atMs: 1 }];
    await reset([], { queue, turnId: "trn_1" });
    await page.locator(".queued").getByRole("button", { name: "Edit" }).click();
    await page.locator("#composer .chip", { hasText: "shot.png" }).waitFor();
    assert.equal(await page.locator("#composer textarea").inputValue(), "look");
    await page.keyboard.press("Enter");
    const sent = await page.evaluate(() => window.asked.filter((message) => message.type === "send"));
    assert.deepEqual(sent, [{ type: "send", text: "look", attached: [{ label: "shot.png", text: "", file: { id: 1, type: "image/png", size: 0, digest: "sha256:1" } }], whenBusy: "queue" }]);
  });

  it("part/13 tells inputs that steer the turn from those that wait for its end", async () => {
    const input = (state: string, text: string) => ({ inputId: text, turnId: `trn_${text}`, state, input: [{ type: "text", text }], atMs: 1 });
    await reset([], { queue: [input("pendingActive", "now"), input("queued", "later")], turnId: "trn_1" });
    assert.deepEqual((await page.locator(".queued").allInnerTexts()).map((text) => text.split(/\s+/).filter(Boolean)), [["Steering", "now"], ["Queued", "later"]]);
    const borders = await page.locator(".queued").evaluateAll((all) => all.map((one) => getComputedStyle(one).borderTopStyle));
    assert.deepEqual(borders, ["solid", "dashed"]);
  });
});
