import { strict as assert } from "node:assert";
import { parseHTML } from "linkedom";
import type { FromWebview } from "../../src/chat/messages";
import { reduce, snapshot } from "../../src/model/session";
import { usageText } from "../../src/model/usage";
import type { CellCall, Decision, Event, Item } from "../../src/protocol";
import { QuestionCards } from "../../src/webview/questionCards";
import { Items } from "../../src/webview/items";
import { StreamedMarkdown, render, settledEnd } from "../../src/webview/markdown";
import { endText, planOf, rowsOf, summaryOf, type ItemRow } from "../../src/webview/rows";
import { attached, turn } from "./turn";

describe("issue/6-1 markdown", () => {
  it("runs nothing and loads nothing", () => {
    const html = render("<script>x</script> <img src=x onerror=y> ![i](http://e/x.png) [a](javascript:x) [b](data:text/html,x) [c](command:x)");
    const { document } = parseHTML(`<main>${html}</main>`);
    assert.equal(document.querySelectorAll("script, img, iframe").length, 0);
    assert.deepEqual([...document.querySelectorAll("a")].map((a) => a.getAttribute("href")).filter((href) => /^(javascript|data):/.test(href ?? "")), []);
  });

  it("of a streamed text equals that of the whole text", () => {
    const text = "# Title\n\nOne *two*.\n\n- a\n\n- b\n\n  c\n\nThree\n\n```js\nx\n\ny\n```\n\n~~~\n```\n\n~~~\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nend\n\n> q\n\n> r\n\n1. one\n\n2. two\n";
    const growing = new StreamedMarkdown();
    for (let end = 1; end < text.length; end++) {
      growing.render(text.slice(0, end));
    }
    assert.equal(growing.render(text), render(text));
  });

  it("finds the part of a text that cannot change", () => {
    assert.equal(settledEnd("a\n\nb"), 3);
    assert.equal(settledEnd("a\n\n```\nb\n\nc"), 3);
    assert.equal(settledEnd("- a\n\n- b"), 0);
  });
});

describe("issue/6-1 rows of a chat", () => {
  it("keep their version while their item is unchanged", () => {
    const view = reduce(snapshot(attached), turn);
    const rows = rowsOf(view);
    assert.deepEqual(rows.map((row) => row.key), ["nod_u:0", "nod_a:0", "nod_a:1", "nod_b:0", "end:trn_1"]);
    const again = rowsOf(reduce(view, []));
    assert.deepEqual(again.map((row, at) => row.version === rows[at]?.version), [true, true, true, true, true]);
  });

  it("describe a turn that ended without a reply", () => {
    assert.equal(endText({ turnId: "t", outcome: { kind: "assistantMessage" } }), "");
    assert.equal(endText({ turnId: "t", outcome: { kind: "cancelled" } }), "Stopped.");
    assert.equal(endText({ turnId: "t", outcome: { kind: "cancelled", cancel: { reason: "stopped by the user" } } as never }), "Stopped.");
    assert.equal(endText({ turnId: "t", outcome: { kind: "providerError" }, message: "no key" }), "Turn failed: no key (providerError)");
  });

  it("summarize a call by its most informative argument", () => {
    const item = (args: unknown): Item => ({ itemId: "x", kind: "toolCall", status: "completed", atMs: 1, args });
    assert.equal(summaryOf(item({ limit: 3, path: "a.ts" })), "a.ts");
    assert.equal(summaryOf(item({ command: "one\ntwo" })), "one\u2026");
    assert.equal(summaryOf(item(undefined)), "");
  });

  it("show the newest plan and the usage", () => {
    const steps = [{ text: "a", status: "pending" }];
    const item: Item = { itemId: "p", kind: "toolCall", status: "completed", atMs: 1, tool: "update_plan", args: { steps } };
    assert.deepEqual(planOf({ ...snapshot(attached), items: [item, { ...item, status: "failed", args: {} }] }), steps);
    assert.equal(usageText({ input: 100, cacheRead: 20_000, cacheWrite: 0, output: 7, reasoning: 0 }), "20k tokens in (20k cached), 7 out");
    assert.equal(usageText({ input: 100, cacheRead: 0, cacheWrite: 0, output: 7, reasoning: 0, cost: 4_250_000 }), "100 tokens in, 7 out, $0.0043");
    assert.equal(usageText({ input: 100, cacheRead: 0, cacheWrite: 0, output: 7, reasoning: 0, cost: 12_345_000_000 }), "100 tokens in, 7 out, $12.35");
  });
});

describe("issue/6-1 items of a chat", () => {
  before(() => {
    Object.assign(globalThis, { document: parseHTML("<html><body></body></html>").document });
  });
  after(() => {
    Reflect.deleteProperty(globalThis, "document");
  });

  const row = (item: Item) => new Items(() => undefined).row({ key: item.itemId, version: item, item, live: false }, undefined);
  const call: Item = { itemId: "c", kind: "toolCall", status: "completed", atMs: 1, callId: "k", tool: "shell", args: { command: "<b>ls</b>" }, output: { status: "success", text: "<i>out</i>" } };

  it("show tool output as text, not HTML", () => {
    const element = row({ ...call, status: "failed" });
    assert.equal(element.querySelectorAll("i").length, 0);
    assert.equal(element.querySelector(".output")?.textContent, "<i>out</i>");
    assert.equal(element.querySelector("summary code")?.textContent, "<b>ls</b>");
  });

  it("open the diff of a call", () => {
    const asked: FromWebview[] = [];
    const change = { path: "a.txt", diff: "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-x\n+y\n", added: 1, removed: 1 };
    const item: Item = { ...call, output: { status: "success", change } };
    const element = new Items((message) => asked.push(message)).row({ key: "c", version: 1, item, live: false }, undefined);
    assert.equal(element.querySelector(".diff .added")?.textContent, "+y\n");
    [...element.querySelectorAll("button")].find((b) => b.textContent === "Open diff")?.click();
    assert.deepEqual(asked, [{ type: "diff", change }]);
  });

  it("issue/19-5 show a code cell with its result, the line of its error and its changed globals", () => {
    const cell: Item = { itemId: "x", kind: "codeCell", status: "failed", atMs: 1, language: "starlark", text: "a = '<b>'\nprint(a)\noops" };
    const done = row({ ...cell, status: "completed", cell: { printed: "<i>1</i>\n", value: [2], changed: ["a", "b"] } });
    assert.equal(done.querySelector("pre.code")?.textContent, "a = '<b>'\nprint(a)\noops\n");
    assert.equal(done.querySelector(".output")?.textContent, "<i>1</i>\nValue: [2]");
    assert.equal(done.querySelector(".changed")?.textContent, "changed: a, b");
    assert.equal(done.querySelectorAll("i, .wrong").length, 0);
    const failed = row({ ...cell, cell: { error: "undefined: oops", position: { line: 3, column: 1 } } });
    assert.deepEqual([...failed.querySelectorAll(".wrong")].map((e) => e.textContent), ["oops\n", "Error in line 3, column 1: undefined: oops"]);
    assert.equal(row(cell).querySelector(".wrong")?.textContent, "The code is incomplete and was not run.");
    const quoted = row({ ...cell, cell: { error: "undefined: oops\n    3 | oops", position: { line: 3 } } });
    assert.equal(quoted.querySelector("div.wrong")?.textContent, "Error in line 3: undefined: oops");
    assert.equal(row({ ...cell, status: "inProgress" }).textContent, "\u25d4starlarka = '<b>'\nprint(a)\noops\n");
  });

  it("issue/19-8 highlight the code of a cell, line by line and as text", () => {
    const cell: Item = { itemId: "x", kind: "codeCell", status: "completed", atMs: 1, language: "starlark", text: "for x in ['<b>']: # <i>\n  print('''a\nb''')" };
    const code = row(cell).querySelector("pre.code");
    assert.deepEqual([...(code?.children ?? [])].map((line) => line.textContent), ["for x in ['<b>']: # <i>\n", "  print('''a\n", "b''')\n"]);
    const marked = (kind: string) => [...(code?.querySelectorAll(`.hljs-${kind}`) ?? [])].map((e) => e.textContent);
    assert.deepEqual(marked("keyword"), ["for", "in"]);
    assert.deepEqual(marked("string"), ["'<b>'", "'''a", "b'''"]);
    assert.deepEqual(marked("comment"), ["# <i>"]);
    assert.equal(code?.querySelectorAll("b, i").length, 0);
    assert.equal(row({ ...cell, language: "calc" }).querySelectorAll("[class^=hljs]").length, 0);
  });

  it("issue/19-8 show the first calls of a cell with their durations, and the others on request", () => {
    const calls = Array.from({ length: 10 }, (_, n): CellCall => ({ callId: `c${n}`, index: n + 1, tool: "read", args: { path: `<i>${n}` }, status: "completed", durationMs: n, summary: "ok" }));
    calls[1] = { callId: "c1", index: 2, tool: "grep", args: { pattern: "x", path: "y" }, status: "failed", durationMs: 1200, summary: "no such file" };
    const cell: Item = { itemId: "x", kind: "codeCell", status: "completed", atMs: 1, language: "starlark", text: "x", cell: { printed: "1", durationMs: 2500, calls, moreCalls: 120 } };
    const shown = row(cell);
    const lines = [...shown.querySelectorAll(".cellCalls > .call")].map((e) => e.textContent);
    assert.deepEqual(lines.slice(0, 2), ["\u2713read <i>0 \u00b7 0 ms \u00b7 ok", '\u2717grep {"pattern":"x","path":"y"} \u00b7 1.2 s \u00b7 failed: no such file']);
    assert.equal(lines.length, 8);
    assert.equal(shown.querySelector(".cellCalls summary")?.textContent, "\u2026 122 more calls");
    assert.equal(shown.querySelector(".took")?.textContent, "2.5 s");
    assert.equal(shown.querySelectorAll("i").length, 0);
  });

  it("issue/19-8 show the newest calls of a cell while it runs", () => {
    const item: Item = { itemId: "x", kind: "codeCell", status: "inProgress", atMs: 1, language: "starlark", text: "x", turnId: "trn_1" };
    const call = (index: number, status: CellCall["status"]): Event => ({ type: "cell/call", atMs: 1, itemId: "x", cellCall: { callId: `c${index}`, index, tool: `tool${index}`, status, durationMs: index } });
    let view = reduce(snapshot({ ...attached, items: [item] }), [1, 2, 3].flatMap((n) => [call(n, "inProgress"), call(n, "completed")]));
    const shown = () => {
      const found = rowsOf(view).find((one) => one.key === "x") as ItemRow;
      return [...new Items(() => undefined).row(found, undefined).querySelectorAll(".cellCalls > *")].map((e) => e.textContent);
    };
    assert.deepEqual(shown(), ["\u2713tool1 \u00b7 1 ms", "\u2713tool2 \u00b7 2 ms", "\u2713tool3 \u00b7 3 ms"]);
    view = reduce(view, Array.from({ length: 27 }, (_, n) => call(n + 4, n < 26 ? "completed" : "inProgress")));
    assert.deepEqual([shown()[0], shown().at(-1), shown().length], ["\u2026 22 earlier calls", "\u25d4tool30", 9]);
    view = reduce(view, [call(5, "completed"), { type: "item/completed", atMs: 1, itemId: "x", item: { ...item, status: "completed", cell: {} } }]);
    assert.deepEqual(shown(), []);
  });

  it("collapse reasoning", () => {
    const element = row({ itemId: "r", kind: "reasoning", status: "completed", atMs: 1, text: "hm" });
    assert.equal(element.querySelector("details")?.hasAttribute("open"), false);
    assert.equal(element.querySelector("details")?.childElementCount, 1);
  });

  it("show a question with its choices, disabled without a connection", () => {
    const decision: Decision = { decisionId: "dec_1", sessionId: "s", kind: "approval", prompt: "May it? The plugin guard asks: new file", choices: ["allowOnce", "allowSession", "allowAlways", "reject"], default: "reject", openedAtMs: 1, deadlineAtMs: 0 };
    const place = document.createElement("section");
    const posted: FromWebview[] = [];
    const asked = new QuestionCards(place, (message) => posted.push(message));
    asked.show([decision], true);
    assert.match(place.textContent ?? "", /The plugin guard asks: new file/);
    assert.deepEqual([...place.querySelectorAll("button")].map((b) => b.textContent), ["Allow once", "Allow for this session", "Always allow", "Deny"]);
    place.querySelectorAll("button")[1]?.click();
    assert.equal(asked.key("KeyN"), true);
    assert.deepEqual(posted, [{ type: "answer", decisionId: "dec_1", choice: "allowSession" }, { type: "answer", decisionId: "dec_1", choice: "reject" }]);
    asked.show([decision], false);
    assert.deepEqual([...place.querySelectorAll("button")].map((b) => b.hasAttribute("disabled")), [true, true, true, true]);
    asked.show([], true);
    assert.equal(place.childElementCount, 0);
  });

  const why = { by: "rule" as const, text: "The rule decides." };
  const approval = (detail: Decision["detail"], tool = "shell", args: object = { command: "npm test" }): Decision => ({
    decisionId: "dec_1", sessionId: "s", kind: "approval", prompt: "May it?", choices: ["allowOnce", "allowSession", "allowAlways", "reject"], default: "reject", openedAtMs: 1, deadlineAtMs: 0,
    call: { callId: "c", name: tool, args }, detail,
  });
  const opened = (decision: Decision) => {
    const place = document.createElement("section");
    const posted: FromWebview[] = [];
    new QuestionCards(place, (message) => posted.push(message)).show([decision], true);
    const buttons = () => [...place.querySelectorAll("button")].map((b) => b.textContent);
    const click = (text: string) => [...place.querySelectorAll("button")].find((b) => b.textContent === text)?.click();
    return { place, posted, buttons, click };
  };

  it("part/11 show a command, and send a width, an edited command or a reason", () => {
    const widths = [{ text: "commands that begin with npm test", rule: { action: "allow" as const } }];
    const card = opened(approval({ command: { command: "npm test", dir: "/work", outside: true }, hosts: ["a.example"], why: { ...why, by: "outside" }, editable: true, widths }));
    assert.equal(card.place.querySelector(".question b")?.textContent, "Run outside the sandbox?");
    assert.equal(card.place.querySelector(".command")?.textContent, "npm test");
    assert.match(card.place.textContent ?? "", /Network: a\.example.*The rule decides\./s);
    assert.deepEqual(card.buttons(), ["Allow once", "Allow for this session", "Always allow", "Deny", "Edit\u2026", "Deny with a reason\u2026"]);
    card.click("Always allow");
    assert.deepEqual([...card.place.querySelectorAll(".widths label")].map((one) => one.textContent), ["commands that begin with npm test", "exactly this call"]);
    card.click("Allow");
    card.click("Back");
    card.click("Edit\u2026");
    (card.place.querySelector("textarea") as HTMLTextAreaElement).value = "npm run check";
    card.click("Run once");
    card.click("Back");
    card.click("Deny with a reason\u2026");
    (card.place.querySelector("textarea") as HTMLTextAreaElement).value = " use make ";
    card.click("Deny");
    const answer = { type: "answer", decisionId: "dec_1" };
    assert.deepEqual(card.posted, [{ ...answer, choice: "allowAlways", width: 0 }, { ...answer, choice: "allowOnce", args: { command: "npm run check" } }, { ...answer, choice: "reject", reason: "use make" }]);
  });

  it("part/11 show a diff whose changes can be taken or left", () => {
    const hunk = (start: number) => ({ oldStart: start, oldLines: 1, newStart: start, newLines: 1, text: "-old\n+new\n" });
    const card = opened(approval({ files: [{ path: "a.txt", kind: "change", added: 2, removed: 2, hunks: [hunk(1), hunk(9)] }], why, editable: true }, "edit", { path: "a.txt" }));
    assert.equal(card.place.querySelector(".question b")?.textContent, "Change a.txt?");
    assert.deepEqual([...card.place.querySelectorAll(".numbered span")].map((one) => one.textContent), ["1- old\n", "1+ new\n", "9- old\n", "9+ new\n"]);
    const boxes = [...card.place.querySelectorAll("input")];
    boxes[0]!.checked = false;
    boxes[0]!.dispatchEvent(new (boxes[0]!.ownerDocument.defaultView!.Event)("change"));
    assert.deepEqual(card.buttons(), ["Open diff", "Allow 1 of 2 changes", "Deny", "Deny with a reason\u2026"]);
    card.click("Open diff");
    card.click("Allow 1 of 2 changes");
    assert.deepEqual(card.posted, [{ type: "preview", decisionId: "dec_1", file: 0 }, { type: "answer", decisionId: "dec_1", choice: "allowOnce", hunks: [1] }]);
  });

  it("part/11 say what a diff does not show, and open the arguments of other tools", () => {
    const cut = opened(approval({ files: [{ path: "a.txt", kind: "create", added: 900, cut: true, hunks: [{ oldStart: 0, oldLines: 0, newStart: 1, newLines: 1, text: "+x\n" }] }], why }));
    assert.equal(cut.place.querySelector(".missing")?.textContent, "The diff is too long: 899 changed lines are not in it.");
    const other = opened(approval({ why }, "mcp_post", { title: "x" }));
    assert.equal(other.place.querySelector("details")?.hasAttribute("open"), true);
    assert.equal(cut.place.querySelector("details")?.hasAttribute("open"), false);
  });

  it("part/11 offer to run a refused call outside the sandbox", () => {
    const posted: FromWebview[] = [];
    const item: Item = { ...call, status: "failed", output: { status: "failure", text: "refused", refusal: { what: "The command has no network.", mode: "workspace", retry: { command: "npm i", outside: true } } } };
    const element = new Items((message) => posted.push(message)).row({ key: "c", version: item, item, live: false }, undefined);
    assert.equal(element.querySelector(".refusal")?.textContent, "The command has no network.");
    [...element.querySelectorAll("button")].find((b) => b.textContent === "Run once outside the sandbox")?.click();
    assert.deepEqual(posted, [{ type: "again", itemId: "c", withHosts: false }]);
  });

  it("part/11 offer to run a refused call with the hosts that it lacked", () => {
    const posted: FromWebview[] = [];
    const refusal = { what: "The sandbox refused a.test (why).", mode: "workspace" as const, retry: { outside: true }, withHosts: { hosts: ["a.test", "b.test"], retry: {} } };
    const item: Item = { ...call, output: { status: "success", refusal } };
    const element = new Items((message) => posted.push(message)).row({ key: "c", version: item, item, live: false }, undefined);
    const buttons = [...element.querySelectorAll("button")];
    assert.deepEqual(buttons.map((b) => b.textContent).slice(-2), ["Run once with a.test, b.test", "Run once outside the sandbox"]);
    buttons.at(-2)!.click();
    assert.deepEqual(posted, [{ type: "again", itemId: "c", withHosts: true }]);
  });
});
