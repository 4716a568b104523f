import { strict as assert } from "node:assert";
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import type { FromWebview } from "../../src/chat/messages";
import { snapshot } from "../../src/model/session";
import type { CellCall, Event, Item } from "../../src/protocol";
import { attached } from "../unit/turn";
import { chatPage } from "./chatPage";

/** The longest time for which the script of a chat may block a frame. */
const longestMs = 50;

const kinds: ((n: number) => Partial<Item>)[] = [
  (n) => ({ kind: "userMessage", text: `question ${n}` }),
  (n) => ({ kind: "agentMessage", text: `# Answer ${n}\n\n${"Some *words* of a `model`. ".repeat(1 + (n % 40))}\n\n\`\`\`js\nconst n = ${n};\n\`\`\`\n` }),
  (n) => ({ kind: "toolCall", callId: `c${n}`, tool: "edit", args: { path: `file${n}.ts` }, output: { status: "success", change: { path: `file${n}.ts`, added: 1, removed: 1, diff: "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n" } } }),
];

const itemOf = (n: number): Item => ({ itemId: `nod_${n}:0`, kind: "notice", status: "completed", atMs: n, turnId: "trn_1", ...kinds[n % 3]?.(n) });
const many = Array.from({ length: 10_000 }, (_, n) => itemOf(n));

const mean = (all: number[]) => (all.reduce((sum, one) => sum + one, 0) / all.length).toFixed(1);

/** meter returns a function that returns the CPU time, in ms, of the scripts of a page since its last call. */
async function meter(page: Page): Promise<() => Promise<number>> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
  let last = 0;
  const cost = async () => {
    const { metrics } = await devtools.send("Performance.getMetrics");
    const now = metrics.find((metric) => metric.name === "ScriptDuration")?.value ?? NaN;
    const spent = 1000 * (now - last);
    last = now;
    return spent;
  };
  await cost();
  return cost;
}

describe("issue/6-1 the page of a chat", function () {
  const chat = chatPage(this);
  const { tell, drawn, asked } = chat;
  const reset = (items: Item[], more = {}) => chat.reset({ items, ...more });
  const scrollTo = async (part: number) => {
    await chat.page.evaluate((to) => {
      const scroller = document.getElementById("scroller");
      scroller?.scrollTo(0, to * scroller.scrollHeight);
    }, part);
    await drawn();
  };

  it("shows 10,000 items, scrolls and grows without a frame over 50 ms of its script", async () => {
    await reset(many);
    await chat.page.getByText("Answer 9997").waitFor();
    const mounted = await chat.page.locator(".row").count();
    assert.ok(mounted < 60, `${mounted} rows are in the document`);
    const cost = await meter(chat.page);
    const took: number[] = [];
    for (let step = 0; step < 60; step++) {
      await scrollTo(((step * 7) % 60) / 60);
      took.push(await cost());
    }
    await scrollTo(1);
    const item: Item = { itemId: "nod_live:0", kind: "agentMessage", status: "inProgress", atMs: 1, turnId: "trn_2" };
    await tell({ type: "events", events: [{ type: "item/started", atMs: 1, turnId: "trn_2", item }] });
    await cost();
    for (let step = 0; step < 100; step++) {
      const event: Event = { type: "item/delta", atMs: 1, turnId: "trn_2", itemId: item.itemId, offset: 50 * step, text: "Ten words more of an answer that grows.\n\n".padEnd(50) };
      await tell({ type: "events", events: [event] });
      await drawn();
      took.push(await cost());
    }
    const sorted = took.toSorted((a, b) => b - a);
    console.log(`      scrolling ${mean(took.slice(0, 60))} ms, growing ${mean(took.slice(60))} ms, longest ${sorted.slice(0, 3).map((ms) => ms.toFixed(1)).join(", ")} ms`);
    assert.ok((sorted[0] ?? 0) < longestMs, `the longest took ${sorted[0]} ms`);
    assert.ok((sorted[0] ?? 0) > 0, "nothing was measured");
  });

  it("keeps the reading position when items are added below or loaded above", async () => {
    await reset(many.slice(3000, 3200), { older: "cursor" });
    await scrollTo(0.5);
    const top = () => chat.page.evaluate(() => {
      const edge = document.getElementById("scroller")?.getBoundingClientRect().top ?? 0;
      const rows = [...document.querySelectorAll<HTMLElement>(".row")].map((row) => ({ id: row.dataset.item, y: Math.round(row.getBoundingClientRect().top - edge) }));
      return rows.find((row) => row.y >= 0);
    });
    const before = await top();
    await tell({ type: "page", page: { session: attached.session, data: many.slice(2800, 3000) } });
    await drawn();
    await tell({ type: "events", events: [{ type: "item/completed", seq: 1, atMs: 1, turnId: "trn_2", item: { ...itemOf(9999), itemId: "nod_new:0" } }] });
    await drawn();
    const after = await top();
    assert.equal(after?.id, before?.id);
    assert.ok(Math.abs((after?.y ?? 0) - (before?.y ?? 0)) <= 2, `${JSON.stringify(before)} became ${JSON.stringify(after)}`);
  });

  it("part/13 goes to a message, also to one of an older page, and gives it the focus", async () => {
    const focused = () => chat.page.evaluate(() => {
      const row = document.activeElement?.closest<HTMLElement>(".row");
      const [at, list] = [row?.getBoundingClientRect(), document.getElementById("scroller")?.getBoundingClientRect()];
      return { item: row?.dataset.item, seen: at && list && at.top >= list.top - 1 && at.top < list.bottom };
    });
    await reset(many.slice(3000, 3200), { older: "cursor" });
    await tell({ type: "goTo", nodeId: "nod_3042" });
    await drawn();
    assert.deepEqual(await focused(), { item: "nod_3042:0", seen: true });
    await tell({ type: "goTo", nodeId: "nod_2810" });
    assert.equal(await chat.page.evaluate(() => window.asked.filter(({ type }) => type === "older").length), 1);
    await tell({ type: "page", page: { session: attached.session, data: many.slice(2800, 3000) } });
    await drawn();
    assert.deepEqual(await focused(), { item: "nod_2810:0", seen: true });
  });

  it("stays at the end when a question shrinks the list", async () => {
    await reset(many.slice(3000, 3200));
    await drawn();
    const below = () => chat.page.evaluate(() => {
      const { scrollTop = 0, clientHeight = 0, scrollHeight = 0 } = document.getElementById("scroller") ?? {};
      return { below: scrollHeight - scrollTop - clientHeight, clientHeight };
    });
    const before = await below();
    const decision = { decisionId: "dec_1", sessionId: "ses_1", kind: "approval", prompt: "May it?", choices: ["allowOnce", "reject"], default: "reject", atMs: 1 };
    await tell({ type: "events", events: [{ type: "decision/opened", seq: 1, atMs: 1, decision } as never] });
    await chat.page.getByText("May it?").waitFor();
    await drawn();
    const after = await below();
    assert.ok(after.clientHeight < before.clientHeight, "the question shrinks the list");
    assert.ok(after.below < 2 && before.below < 2, `${before.below} became ${after.below}`);
  });

  it("requests older items at the top, once per page", async () => {
    await reset(many.slice(0, 200), { older: "cursor" });
    await scrollTo(0);
    await scrollTo(0.02);
    await scrollTo(0);
    const asked = await chat.page.evaluate(() => window.asked.filter((message) => message.type === "older").length);
    assert.equal(asked, 1);
  });

  it("can be used with the keyboard alone", async () => {
    await reset(many.slice(0, 30), { turnId: "trn_9" });
    const field = chat.page.locator("#composer textarea");
    await field.focus();
    await chat.page.keyboard.type("one");
    await chat.page.keyboard.press("Shift+Enter");
    await chat.page.keyboard.type("two");
    await chat.page.keyboard.press("Enter");
    await tell({ type: "sent", ok: true });
    await chat.page.keyboard.type("now");
    await chat.page.keyboard.press("Control+Enter");
    await tell({ type: "sent", ok: true });
    await chat.page.keyboard.press("Escape");
    await chat.page.keyboard.press("Alt+ArrowUp");
    assert.equal(await chat.page.evaluate(() => (document.activeElement as HTMLElement).dataset.item), "nod_29:0");
    await chat.page.keyboard.press("Alt+ArrowUp");
    assert.equal(await chat.page.evaluate(() => (document.activeElement as HTMLElement).dataset.item), "nod_28:0");
    const asked = await chat.page.evaluate(() => window.asked.filter((message) => message.type === "send" || message.type === "stop"));
    assert.deepEqual(asked, [
      { type: "send", text: "one\ntwo", attached: [], whenBusy: "queue" },
      { type: "send", text: "now", attached: [], whenBusy: "steer" },
      { type: "stop" },
    ]);
  });

  it("keeps the draft if the daemon rejects the input", async () => {
    await reset([]);
    await chat.page.locator("#composer textarea").fill("precious");
    await chat.page.keyboard.press("Enter");
    await tell({ type: "sent", ok: false });
    await tell({ type: "failed", message: "the disk is full" });
    assert.equal(await chat.page.locator("#composer textarea").inputValue(), "precious");
    await chat.page.getByText("the disk is full").waitFor();
  });

  it("part/13 moves the focus to the next question after an answer, then to the input", async () => {
    const decision = (n: number) => ({ decisionId: `dec_${n}`, sessionId: "ses_1", kind: "approval", prompt: `May it ${n}?`, choices: ["allowOnce", "reject"], default: "reject", openedAtMs: 1, deadlineAtMs: 0 });
    await reset([], { decisions: [decision(1), decision(2)] });
    const resolved = (n: number) => tell({ type: "events", events: [{ type: "decision/resolved", seq: n, atMs: 1, decision: decision(n) } as never] });
    await chat.page.locator(".card").first().getByRole("button", { name: "Deny" }).focus();
    await resolved(1);
    assert.equal(await chat.page.evaluate(() => document.activeElement?.getAttribute("aria-label")), "May it 2?");
    await resolved(2);
    assert.equal(await chat.page.evaluate(() => document.activeElement?.tagName), "TEXTAREA");
  });

  it("part/13 leaves the focus in the input when another client answers", async () => {
    const decision = { decisionId: "dec_1", sessionId: "ses_1", kind: "approval", prompt: "May it?", choices: ["allowOnce"], default: "reject", openedAtMs: 1, deadlineAtMs: 0 };
    await reset([], { decisions: [decision] });
    await chat.page.evaluate(() => document.getElementById("scroller")?.focus());
    await tell({ type: "events", events: [{ type: "decision/resolved", seq: 1, atMs: 1, decision } as never] });
    assert.equal(await chat.page.evaluate(() => document.activeElement?.id), "scroller");
  });

  it("part/13 shows the caret of a growing text at the end of its last line, and none after it", async () => {
    await reset([]);
    const item: Item = { itemId: "nod_live:0", kind: "agentMessage", status: "inProgress", atMs: 1, turnId: "trn_2" };
    const end = "- one\n- two";
    await tell({ type: "events", events: [{ type: "item/started", atMs: 1, turnId: "trn_2", item }, { type: "item/delta", atMs: 1, turnId: "trn_2", itemId: item.itemId, offset: 0, text: `Some text.\n\n${end}` }] });
    const caret = () => chat.page.locator(".agentMessage *").evaluateAll((all) => all.flatMap((one) => (/\u258f/.test(getComputedStyle(one, "::after").content) ? [one.textContent] : [])));
    assert.deepEqual(await caret(), ["two"]);
    const height = () => chat.page.locator(".agentMessage .markdown").evaluate((e) => e.getBoundingClientRect().height);
    const grown = await height();
    await tell({ type: "events", events: [{ type: "item/completed", seq: 1, atMs: 1, turnId: "trn_2", itemId: item.itemId, item: { ...item, status: "completed", text: `Some text.\n\n${end}` } }] });
    assert.deepEqual([await caret(), await height()], [[], grown]);
  });

  it("part/13 shows what a new chat can do, with examples and other sessions, until there is an entry", async () => {
    await reset([]);
    await tell({ type: "recent", sessions: [{ sessionId: "ses_2", title: "Explain the build", age: "2 h" }] });
    await chat.page.getByRole("button", { name: "Explain the build" }).click();
    assert.deepEqual(await asked("show"), [{ type: "show", sessionId: "ses_2" }]);
    assert.equal(await chat.page.locator(".example").count(), 3);
    await chat.page.getByRole("button", { name: "Explain this project" }).click();
    assert.match(await chat.page.locator("#composer textarea").inputValue(), /^Explain this project: what it does/);
    assert.match(await chat.page.locator("#welcome table").innerText(), /Ctrl\+Enter\s+steer the running turn/);
    await tell({ type: "events", events: [{ type: "item/completed", seq: 1, atMs: 1, turnId: "trn_1", item: itemOf(1) }] });
    assert.equal(await chat.page.locator("#welcome").isVisible(), false);
  });

  it("part/13 offers in the demo what its model answers", async () => {
    await tell({ type: "reset", view: snapshot({ ...attached, items: [] }), options: { sendOnEnter: true, showReasoning: false, demo: true }, connected: true, left: {} });
    const matches = (JSON.parse(readFileSync("media/demo.json", "utf8")) as { turns: { match: { lastUserContains: string } }[] }).turns.map((turn) => turn.match.lastUserContains);
    for (const [at, text] of matches.entries()) {
      await chat.page.locator(".example").nth(at).click();
      assert.ok((await chat.page.locator("#composer textarea").inputValue()).includes(text), text);
    }
    assert.equal(await chat.page.locator(".example").count(), matches.length);
  });

  it("issue/19-8 shows a running cell with its calls, and then its error at the line", async () => {
    const text = "# Count the lines of each file.\nfor path in tools.glob(\"*.txt\").unwrap()[\"paths\"]:\n    print(tools.read(path).text)\noops(1)";
    const item: Item = { itemId: "nod_c:1", kind: "codeCell", status: "inProgress", atMs: 1, turnId: "trn_2", language: "starlark", text };
    const call = (index: number, status: CellCall["status"], summary = "", durationMs = 3): Event => ({ type: "cell/call", atMs: 1, turnId: "trn_2", itemId: "nod_c:1", cellCall: { callId: `c${index}`, index, tool: index === 1 ? "glob" : "read", args: { path: `f${index}.txt` }, status, durationMs, summary } });
    await reset([]);
    await tell({ type: "events", events: [{ type: "item/started", seq: attached.seq + 1, atMs: 1, turnId: "trn_2", item }, call(1, "completed", "f2.txt f3.txt"), call(2, "inProgress")] });
    await chat.page.getByText("glob f1.txt \u00b7 3 ms \u00b7 f2.txt f3.txt").waitFor();
    await chat.page.getByText("read f2.txt", { exact: true }).waitFor();
    const { id, language, code } = await chat.page.evaluate(() => window.asked.find((message) => message.type === "highlight")) as FromWebview & { type: "highlight" };
    assert.deepEqual([language, code], ["starlark", text]);
    await tell({ type: "highlighted", id, lines: text.split("\n").map((line) => [[line.slice(0, 3), "#010203", 1], [line.slice(3)]]) });
    assert.deepEqual(await chat.page.locator(".codeCell code > span:first-child").allTextContents(), ["# C", "for", "   ", "oop"]);
    const calls = [call(1, "completed", "f2.txt f3.txt").cellCall, call(2, "failed", "is a directory", 1200).cellCall].filter((c) => c !== undefined);
    const cell = { calls, printed: "one\n", error: "undefined: oops\n    4 | oops(1)", position: { line: 4, column: 1 }, changed: ["path"], durationMs: 1250 };
    await tell({ type: "events", events: [{ type: "item/completed", seq: attached.seq + 2, atMs: 2, turnId: "trn_2", itemId: item.itemId, item: { ...item, status: "failed", cell } }] });
    await chat.page.getByText("read f2.txt \u00b7 1.2 s \u00b7 failed: is a directory").waitFor();
    assert.equal(await chat.page.locator("div.wrong").textContent(), "Error in line 4, column 1: undefined: oops");
    assert.equal(await chat.page.locator("code.wrong").textContent(), "oops(1)\n");
    assert.equal(await chat.page.locator(".codeCell .changed").textContent(), "changed: path");
    assert.equal(await chat.page.locator(".codeCell .output").textContent(), "one");
    assert.deepEqual(await chat.page.locator(".codeCell pre.code > code").allTextContents(), text.split("\n").map((line) => `${line}\n`));
    assert.equal(await chat.page.locator(".codeCell code > span").first().evaluate((e) => `${getComputedStyle(e).color} ${getComputedStyle(e).fontStyle}`), "rgb(1, 2, 3) italic");
  });
});
