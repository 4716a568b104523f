import { strict as assert } from "node:assert";
import type { Item } from "../../src/protocol";
import { chatPage } from "./chatPage";

describe("issue/6-1 the inputs that wait", function () {
  const chat = chatPage(this);
  const { tell, asked } = chat;
  const reset = (items: Item[], more = {}) => chat.reset({ items, ...more });

  it("shows queued inputs and removes them", async () => {
    const queue = [{ inputId: "inp_2", turnId: "trn_2", state: "queued", input: [{ type: "text", text: "later" }], atMs: 1 }];
    await reset([], { queue, turnId: "trn_1" });
    await chat.page.locator(".queued", { hasText: "Queued" }).filter({ hasText: "later" }).waitFor();
    await chat.page.getByRole("button", { name: "Edit", exact: true }).click();
    assert.equal(await chat.page.locator("#composer textarea").inputValue(), "later");
    assert.deepEqual(await asked("withdraw"), [{ type: "withdraw", inputId: "inp_2" }]);
  });

  it("part/13 puts the inputs that wait back into the field when the user stops the turn, but not those of plugins", async () => {
    const input = (inputId: string, text: string, more = {}) => ({ inputId, turnId: `trn_${inputId}`, state: "queued", input: [{ type: "text", text }], atMs: 1, ...more });
    const steering = input("inp_4", "steered", { turnId: "trn_1", state: "pendingActive" });
    await reset([], { queue: [input("inp_2", "first"), input("inp_3", "of a plugin", { source: "monitor/a" }), steering, input("inp_5", "last")], turnId: "trn_1" });
    await chat.page.locator("#composer textarea").fill("draft");
    await chat.page.locator("#composer textarea").press("Escape");
    assert.deepEqual(await asked("withdraw", "stop"), [...["inp_2", "inp_4", "inp_5"].map((inputId) => ({ type: "withdraw", inputId })), { type: "stop" }]);
    assert.equal(await chat.page.locator("#composer textarea").inputValue(), "draft\nfirst\nsteered\nlast");
    const said = chat.page.getByRole("status").filter({ hasText: "Taken out of the queue. It does not run until you send it again." });
    await said.waitFor();
    await chat.page.keyboard.press("Enter");
    await tell({ type: "sent", ok: true });
    await said.waitFor({ state: "detached" });
  });

  it("part/13 removes a queued input with one press, also while an answer grows between press and release", async () => {
    const queue = [{ inputId: "inp_2", turnId: "trn_2", state: "queued", input: [{ type: "text", text: "later" }], atMs: 1 }];
    await reset([], { queue, turnId: "trn_1" });
    const used = { input: 5, output: 1, cacheRead: 0, cacheWrite: 0, reasoning: 0, cost: 5_000_000 };
    await chat.page.locator(".queued").getByRole("button", { name: "Remove" }).hover();
    await chat.page.mouse.down();
    await tell({ type: "events", events: [{ type: "usage/updated", seq: 1, atMs: 1, usage: used, total: used } as never] });
    await chat.page.getByText("$0.0050").waitFor();
    await chat.page.mouse.up();
    assert.deepEqual(await asked("withdraw"), [{ type: "withdraw", inputId: "inp_2" }]);
  });

  it("part/13 edits a queued input with its picture", async () => {
    const attachment = { name: "shot.png", type: "image/png", digest: "sha256:1" };
    const queue = [{ inputId: "inp_2", turnId: "trn_2", state: "queued", input: [{ type: "attachment", attachment }, { type: "text", text: "look" }], atMs: 1 }];
    await reset([], { queue, turnId: "trn_1" });
    await chat.page.locator(".queued").getByRole("button", { name: "Edit" }).click();
    await chat.page.locator("#composer .chip", { hasText: "shot.png" }).waitFor();
    assert.equal(await chat.page.locator("#composer textarea").inputValue(), "look");
    await chat.page.keyboard.press("Enter");
    const sent = await asked("send");
    assert.deepEqual(sent, [{ type: "send", text: "look", attached: [{ label: "shot.png", text: "", file: { id: 1, type: "image/png", size: 0, digest: "sha256:1" } }], whenBusy: "queue" }]);
  });

  it("part/13 tells inputs that steer the turn from those that wait for its end", async () => {
    const input = (state: string, text: string) => ({ inputId: text, turnId: `trn_${text}`, state, input: [{ type: "text", text }], atMs: 1 });
    await reset([], { queue: [input("pendingActive", "now"), input("queued", "later")], turnId: "trn_1" });
    assert.deepEqual((await chat.page.locator(".queued").allInnerTexts()).map((text) => text.split(/\s+/).filter(Boolean)), [["Steering", "now"], ["Queued", "later"]]);
    const borders = await chat.page.locator(".queued").evaluateAll((all) => all.map((one) => getComputedStyle(one).borderTopStyle));
    assert.deepEqual(borders, ["solid", "dashed"]);
  });
});
