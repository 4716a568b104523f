import { strict as assert } from "node:assert";
import { parseHTML } from "linkedom";
import type { FromWebview } from "../../src/chat/messages";
import { reduce, snapshot } from "../../src/model/session";
import { usageText } from "../../src/model/usage";
import type { CellCall, Event, Item } from "../../src/protocol";
import type { Token } from "../../src/model/languages";
import { Items } from "../../src/webview/items";
import { StreamedMarkdown, render, settledEnd } from "../../src/webview/markdown";
import { endText, planOf, rowsOf, type ItemRow } from "../../src/webview/rows";
import { titled } from "./titles";
import { attached, turn } from "./turn";

describe("issue/6-1 markdown", () => {
  it("runs nothing and loads nothing", () => {
    const html = render("<script>x</script> <img src=x onerror=y> ![i](http://e/x.png) [a](javascript:x) [b](data:text/html,x) [c](command:x)");
    const { document } = parseHTML(`<main>${html}</main>`);
    assert.equal(document.querySelectorAll("script, img, iframe").length, 0);
    assert.deepEqual([...document.querySelectorAll("a")].map((a) => a.getAttribute("href")).filter((href) => /^(javascript|data):/.test(href ?? "")), []);
  });

  it("part/13 links places in files, and nothing else", () => {
    const links = (text: string) => [...parseHTML(`<main>${render(text)}</main>`).document.querySelectorAll("a")].map((a) => [a.getAttribute("href"), a.textContent]);
    assert.deepEqual(links("See src/a-b.ts:12, (x.go:3:4) and `lib/y.py` or `z.rs:7-9`."), [["src/a-b.ts:12", "src/a-b.ts:12"], ["x.go:3", "x.go:3:4"], ["lib/y.py", "lib/y.py"], ["z.rs:7", "z.rs:7-9"]]);
    assert.deepEqual(links("At 12:30, `console.log`, a.b, localhost:8080, v1.2:3 and `npm run x`."), []);
    assert.deepEqual(links("[a.ts:1](https://e.com/b.ts:2) and ```x.ts:3```"), [["https://e.com/b.ts:2", "a.ts:1"], ["x.ts:3", "x.ts:3"]]);
  });

  it("part/13 shows the state of tasks", () => {
    const { document } = parseHTML(`<main>${render("- [x] read\n- [ ] write\n- [y] other\n")}</main>`);
    assert.deepEqual([...document.querySelectorAll("li")].map((li) => [li.className, li.textContent?.trim(), li.querySelector("[role=img]")?.getAttribute("aria-label") ?? ""]), [["task", "read", "done"], ["task", "write", "open"], ["", "[y] other", ""]]);
  });

  it("of a streamed text equals that of the whole text", () => {
    const text = "# Title\n\nOne *two*.\n\n- a\n\n- b\n\n  c\n\nThree\n\n```js\nx\n\ny\n```\n\n~~~\n```\n\n~~~\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nend\n\n> q\n\n> r\n\n1. one\n\n2. two\n\n- [x] src/a.ts:3\n- [ ] b\n\nat c.ts:4\n";
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
    assert.equal(endText({ turnId: "t", outcome: { kind: "providerError" }, message: "no key" }), "Turn failed: no key");
    assert.equal(endText({ turnId: "t", outcome: { kind: "providerError" } }), "Turn failed: the model's server reported an error.");
    assert.equal(endText({ turnId: "t", outcome: { kind: "runtimeError" } }), "Turn failed: lashd did not say why. Its log may have more.");
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
  const call: Item = { itemId: "c", kind: "toolCall", status: "completed", atMs: 1, callId: "k", tool: "shell", title: titled("shell", "<b>ls</b>"), args: { command: "<b>ls</b>" }, output: { status: "success", text: "<i>out</i>" } };

  it("show tool output as text, not HTML", () => {
    const element = row({ ...call, status: "failed" });
    assert.equal(element.querySelectorAll("i").length, 0);
    assert.equal(element.querySelector(".output")?.textContent, "<i>out</i>");
    assert.equal(element.querySelector("summary code")?.textContent, "<b>ls</b>");
  });

  it("part/13 show the arguments of a call as text, without escapes", () => {
    const shown = (args: unknown) => {
      const element = row({ ...call, status: "failed", tool: "t", args, output: { status: "failure" } });
      return [...element.querySelectorAll("details > .facts, details > .args")].map((one) => `${one.tagName} ${one.textContent}`);
    };
    assert.deepEqual(shown({ path: "a.go", content: "x\n\"y\"" }), ["P path: a.go", "P content:", 'PRE x\n"y"']);
    assert.deepEqual(shown({ command: "ls", workdir: "w", outside: true }), ["P workdir: w \u00b7 outside: true", "PRE ls"]);
    assert.deepEqual(shown({}), ["P No arguments"]);
    assert.deepEqual(shown({ list: Array.from({ length: 30 }, (_, n) => n) }).map((text) => text.replace(/\s+/g, "")), [`PRE[${Array.from({ length: 30 }, (_, n) => n).join(",")}]`]);
    assert.deepEqual(shown(["x"]), ['PRE [\n  "x"\n]']);
  });

  it("part/13 tell a command that ended with an exit code from one that succeeded", () => {
    const head = (exitCode: number) => row({ ...call, output: { status: "success", text: "", value: { exitCode } } }).querySelector("summary");
    assert.deepEqual([6, 0].map((code) => /exit code \d/.exec(head(code)?.textContent ?? "")?.[0]), ["exit code 6", undefined]);
    assert.deepEqual([6, 0].map((code) => head(code)?.querySelector(".codicon")?.className), ["codicon codicon-warning", "codicon codicon-terminal"]);
  });

  it("part/13 leave the arguments of a call to the question about it", () => {
    const running: Item = { ...call, status: "inProgress", output: undefined };
    const open = (item: Item, decisions: unknown[]) => {
      const [one] = rowsOf({ ...snapshot(attached), items: [item], decisions } as never);
      const element = new Items(() => undefined).row(one as ItemRow, undefined);
      return [element.querySelector("details")?.hasAttribute("open"), one?.version, element.querySelector("[role=img]")?.getAttribute("aria-label")];
    };
    const [waits, before, sign] = open(running, [{ decisionId: "d", call: { callId: "k" } }]);
    const [runs, after] = open(running, []);
    assert.deepEqual([waits, runs, before === after, sign], [false, true, false, "waits for an answer"]);
    assert.equal(open({ ...running, args: { patch: "*** Begin Patch" } }, [])[0], false);
  });

  it("part/13 show the text of a slash command on one line, and cannot undo it", () => {
    const said: Item = { itemId: "n1:0", kind: "userMessage", status: "completed", atMs: 1, turnId: "t", text: "/review a.go", origin: { kind: "turnInput", inputId: "i" } };
    const added: Item = { ...said, itemId: "n1:1", text: "[The text of the command /review]\n# Review\nThe file a.go.\n", origin: { kind: "plugin", plugin: "lashd-commands" } };
    const rows = rowsOf({ ...snapshot(attached), items: [said, added] });
    const element = new Items(() => undefined).row(rows[1] as ItemRow, undefined);
    assert.deepEqual([element.className, element.textContent, element.querySelectorAll("button").length], ["row addedText", "The text of the command /review (2 lines)", 0]);
    assert.equal(new Items(() => undefined).row(rows[0] as ItemRow, undefined).querySelector(".text")?.textContent, "/review a.go");
  });

  it("open the diff of a call", () => {
    const asked: FromWebview[] = [];
    const change = { path: "a.go", diff: "--- a/a.go\n+++ b/a.go\n@@ -1,2 +1,2 @@\n-x\n+y\n z\n@@ -8 +8,0 @@\n-@@ -1 +1 @@\n", added: 1, removed: 2 };
    const item: Item = { ...call, output: { status: "success", change } };
    const element = new Items((message) => asked.push(message)).row({ key: "c", version: 1, item, live: false }, undefined);
    assert.deepEqual([...element.querySelectorAll(".diff span")].map((line) => line.textContent), ["1- x\n", "1+ y\n", "2  z\n", "\u22ef\n", "8- @@ -1 +1 @@\n"]);
    [...element.querySelectorAll("button")].find((b) => b.textContent === "Open diff")?.click();
    assert.deepEqual(asked.filter(({ type }) => type === "diff"), [{ type: "diff", change }]);
    assert.deepEqual(asked.flatMap((one) => (one.type === "highlight" ? [[one.language, one.code]] : [])), [["go", "y\nz"], ["go", "x\nz"], ["go", "@@ -1 +1 @@"]]);
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
    assert.equal(row({ ...cell, status: "inProgress" }).textContent, "starlarka = '<b>'\nprint(a)\noops\n");
  });

  it("part/13 color code when its colors are known, at once if they were, and as text", () => {
    const posted: (FromWebview & { type: "highlight" })[] = [];
    const items = new Items((message) => posted.push(message as never));
    const item: Item = { itemId: "x", kind: "agentMessage", status: "completed", atMs: 1, text: "```js\nlet x = '<b>';\nf(x);\n```\n\n```\nplain\n```" };
    const drawn = () => items.row({ key: "x", version: 1, item, live: false }, undefined).querySelector("pre code");
    const code = drawn();
    assert.deepEqual(posted, [{ type: "highlight", id: 1, language: "js", code: "let x = '<b>';\nf(x);\n" }]);
    const lines: Token[][] = [[["let", "#112233", 2], [" x = '<b>';"]], [["f(x);"]], []];
    items.highlights.arrived(1, lines);
    for (const element of [code, drawn()]) {
      assert.deepEqual([element?.textContent, element?.querySelectorAll("b").length, element?.querySelector("span")?.getAttribute("style")], ["let x = '<b>';\nf(x);\n", 0, "--token:#112233;font-weight:bold"]);
    }
    const shown = drawn();
    document.body.append(shown ?? "");
    items.highlights.forget();
    assert.deepEqual(posted.map(({ id }) => id), [1, 2]); // only for what the page shows
    items.highlights.arrived(2, [[["let", "#445566"]]]);
    assert.equal(shown?.querySelector("span")?.getAttribute("style"), "--token:#445566");
    assert.match(code?.innerHTML ?? "", /#112233/);
  });

  it("part/13 do not ask for the colors of a block that still grows", () => {
    const posted: FromWebview[] = [];
    const item: Item = { itemId: "x", kind: "agentMessage", status: "inProgress", atMs: 1, text: "```js\nlet a;\n```\n\n```js\nlet b" };
    new Items((message) => posted.push(message)).row({ key: "x", version: 1, item, live: true }, undefined);
    assert.deepEqual(posted.map((message) => (message as { code: string }).code), ["let a;\n"]);
  });

  it("part/13 offer to undo the turn at its first message, and one message where it steered", () => {
    const posted: FromWebview[] = [];
    const input = (n: number, inputId: string): Item => ({ itemId: `nod_${n}:0`, kind: "userMessage", status: "completed", atMs: n, turnId: "trn_1", text: inputId, origin: { kind: "turnInput", inputId } });
    const picture: Item = { ...input(1, "inp_1"), itemId: "nod_1:1", text: undefined, attachment: { name: "a.png", type: "image/png", data: "" } };
    const view = { ...snapshot(attached), items: [input(1, "inp_1"), picture, { ...call, turnId: "trn_1" }, input(2, "inp_2")] };
    const buttons = rowsOf(view).map((one) => [...new Items((message) => posted.push(message)).row(one, undefined).querySelectorAll<HTMLButtonElement>(".actions button")]);
    assert.deepEqual(buttons.map((all) => all.map((b) => b.textContent).join()), ["Undo turn", "", "Undo from here"]);
    buttons.flat().forEach((b) => b.click());
    assert.deepEqual(posted.map(({ type }) => type).filter((type) => type !== "highlight"), ["rewind", "rewindMessage"]);
    assert.deepEqual(posted.at(-1), { type: "rewindMessage", itemId: "nod_2:0", text: "inp_2" });
  });

  it("issue/19-8 show the first calls of a cell with their durations, and the others on request", () => {
    const calls = Array.from({ length: 10 }, (_, n): CellCall => ({ callId: `c${n}`, index: n + 1, tool: "read", args: { path: `<i>${n}` }, status: "completed", durationMs: n, summary: "ok" }));
    calls[1] = { callId: "c1", index: 2, tool: "grep", args: { pattern: "x", path: "y" }, status: "failed", durationMs: 1200, summary: "no such file" };
    const cell: Item = { itemId: "x", kind: "codeCell", status: "completed", atMs: 1, language: "starlark", text: "x", cell: { printed: "1", durationMs: 2500, calls, moreCalls: 120 } };
    const shown = row(cell);
    const lines = [...shown.querySelectorAll(".cellCalls > .call")].map((e) => e.textContent);
    assert.deepEqual(lines.slice(0, 2), ["read <i>0 \u00b7 0 ms \u00b7 ok", 'grep {"pattern":"x","path":"y"} \u00b7 1.2 s \u00b7 failed: no such file']);
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
    assert.deepEqual(shown(), ["tool1 \u00b7 1 ms", "tool2 \u00b7 2 ms", "tool3 \u00b7 3 ms"]);
    view = reduce(view, Array.from({ length: 27 }, (_, n) => call(n + 4, n < 26 ? "completed" : "inProgress")));
    assert.deepEqual([shown()[0], shown().at(-1), shown().length], ["\u2026 22 earlier calls", "tool30", 9]);
    view = reduce(view, [call(5, "completed"), { type: "item/completed", atMs: 1, itemId: "x", item: { ...item, status: "completed", cell: {} } }]);
    assert.deepEqual(shown(), []);
  });

  it("collapse reasoning", () => {
    const element = row({ itemId: "r", kind: "reasoning", status: "completed", atMs: 1, text: "hm" });
    assert.equal(element.querySelector("details")?.hasAttribute("open"), false);
    assert.equal(element.querySelector("details")?.childElementCount, 1);
  });

  it("part/11 offer to run a refused call outside the sandbox", () => {
    const posted: FromWebview[] = [];
    const item: Item = { ...call, status: "failed", output: { status: "failure", text: "refused", refusal: { what: "The command has no network.", mode: "workspace", retry: { command: "npm i", outside: true } } } };
    const element = new Items((message) => posted.push(message)).row({ key: "c", version: item, item, live: false }, undefined);
    assert.equal(element.querySelector(".refusal")?.textContent, "The command has no network.");
    [...element.querySelectorAll("button")].find((b) => b.textContent === "Run once outside the sandbox")?.click();
    assert.deepEqual(posted.at(-1), { type: "again", itemId: "c", withHosts: false });
  });

  it("part/11 offer to run a refused call with the hosts that it lacked", () => {
    const posted: FromWebview[] = [];
    const refusal = { what: "The sandbox refused a.test (why).", mode: "workspace" as const, retry: { outside: true }, withHosts: { hosts: ["a.test", "b.test"], retry: {} } };
    const item: Item = { ...call, output: { status: "success", refusal } };
    const element = new Items((message) => posted.push(message)).row({ key: "c", version: item, item, live: false }, undefined);
    const buttons = [...element.querySelectorAll("button")];
    assert.deepEqual(buttons.map((b) => b.textContent).slice(-2), ["Run once with a.test, b.test", "Run once outside the sandbox"]);
    buttons.at(-2)!.click();
    assert.deepEqual(posted.at(-1), { type: "again", itemId: "c", withHosts: true });
  });
});
