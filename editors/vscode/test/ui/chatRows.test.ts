import { strict as assert } from "node:assert";
import type { Decision, Item, Task } from "../../src/protocol";
import { toInput } from "../../src/model/input";
import { titled } from "../unit/titles";
import { chatPage } from "./chatPage";

const turnId = "trn_1";
const item = (n: number, more: Partial<Item>): Item => ({ itemId: `nod_${n}:0`, kind: "agentMessage", status: "completed", atMs: n, turnId, ...more });
const call = (n: number, tool: string, args: Record<string, string>, more: Partial<Item> = {}): Item => item(n, { kind: "toolCall", callId: `c${n}`, tool, args, title: titled(tool, args.command ?? args.pattern ?? args.path, args.pattern && `in ${args.path}`), output: { status: "success", text: "ok" }, ...more });
const input = (n: number, more: Partial<Item>): Item => item(n, { kind: "userMessage", origin: { kind: "turnInput", inputId: "inp_1" }, ...more });
const why = { by: "mode" as const, text: "The approval mode asks." };

describe("part13 the rows of a chat", function () {
  const chat = chatPage(this);
  const { tell, reset, asked, drawn } = chat;
  const lines = async () => (await chat.page.locator(".row .call").allInnerTexts()).map((text) => text.replace(/\s+/g, " ").trim());
  const icons = () => chat.page.locator(".row .call .icon .codicon").evaluateAll((all: HTMLElement[]) => all.map((one) => one.className.replace(/^codicon codicon-/, "")));

  it("61 and 30 say what each call did, does or would do, with an icon for its kind", async () => {
    const change = { path: "src/total.ts", added: 1, removed: 1, diff: "--- a/src/total.ts\n+++ b/src/total.ts\n@@ -1 +1 @@\n-a\n+b\n" };
    const asks = { decisionId: "dec_1", call: { callId: "c7" } };
    await reset({
      turnId, decisions: [{ ...asks, sessionId: "ses_1", kind: "approval", prompt: "May it?", choices: ["allowOnce"], default: "reject", openedAtMs: 1, deadlineAtMs: 0 }],
      items: [
        call(1, "read", { path: "/work/src/total.ts" }), call(2, "edit", { path: "src/total.ts" }, { output: { status: "success", change } }), call(3, "shell", { command: "npm test" }),
        call(4, "grep", { pattern: "total", path: "src" }), call(5, "mcp__docs__look", { query: "prices" }), call(6, "read", { path: "b.ts" }, { status: "inProgress", output: undefined }),
        call(7, "shell", { command: "npm publish" }, { status: "inProgress", output: undefined }), call(8, "edit", { path: "c.ts" }, { status: "failed", output: { status: "failure", text: "no such text" } }),
      ],
    });
    assert.deepEqual(await lines(), ["Read total.ts src", "Edited total.ts src +1 \u22121", "Ran npm test", "Searched for total in src", "mcp__docs__look prices", "Reading b.ts", "Run npm publish", "Edit c.ts"]);
    assert.deepEqual(await icons(), ["eye", "edit", "terminal", "search", "tools", "loading codicon-modifier-spin", "question", "error"]);
  });

  it("61 fold three or more calls in a row that only looked at files, and show each on request", async () => {
    const looked = [call(1, "read", { path: "a.ts" }), call(2, "read", { path: "src/b.ts" }), call(3, "list", { path: "src" })];
    await reset({ items: [...looked.slice(0, 2), call(4, "shell", { command: "ls" }), ...looked.map((one) => ({ ...one, itemId: `${one.itemId}x` })), call(5, "read", { path: "c.ts" }, { status: "failed", output: { status: "failure", text: "no file" } })] });
    assert.deepEqual(await lines(), ["Read a.ts", "Read b.ts src", "Ran ls", "Read 2 files, listed 1 folder", "Read c.ts"]);
    await chat.page.locator(".run > summary").click();
    await chat.page.getByText("Listed src").waitFor();
    assert.deepEqual((await lines()).slice(4), ["Read a.ts", "Read b.ts src", "Listed src", "Read c.ts"]);
  });

  it("61 keep an unfolded row of reads unfolded while more reads follow", async () => {
    const read = (n: number) => call(n, "read", { path: `${n}.ts` });
    await reset({ items: [1, 2, 3].map(read), turnId });
    await chat.page.locator(".run > summary").click();
    await chat.page.getByText("1.ts").waitFor();
    await tell({ type: "events", events: [{ type: "item/completed", seq: 1, atMs: 1, turnId, item: read(4) } as never] });
    await chat.page.getByText("4 files").waitFor();
    assert.deepEqual(await lines(), ["Read 4 files", "Read 1.ts", "Read 2.ts", "Read 3.ts", "Read 4.ts"]);
  });

  it("56 cut the name of a tool only without room", async () => {
    await reset({ items: [call(1, "a_tool_of_a_plugin_with_a_name_that_is_long_indeed", { query: "x ".repeat(80) })] });
    const cut = () => chat.page.locator(".call b").evaluate((b) => b.scrollWidth > b.clientWidth);
    assert.equal(await cut(), false);
    await chat.page.setViewportSize({ width: 250, height: 700 });
    await drawn();
    assert.equal(await cut(), true);
  });

  it("4 and 38 say once that a call was denied, with the person's reason", async () => {
    const denied = (n: number, reason?: string) => call(n, "edit", { path: "a.ts", old: "x", new: "y" }, {
      status: "failed", decision: { mode: "deny", choice: "reject", by: "cli_1", why, reason },
      output: { status: "failure", text: "The call was not allowed: the approval request was denied.", failure: { class: "permissionDenied", code: "denied", message: "The call was not allowed: the approval request was denied.", source: "policy" } },
    });
    await reset({ items: [denied(1, "We still need it until June."), denied(2)] });
    const texts = (await chat.page.locator(".toolCall").allInnerTexts()).map((text) => text.split(/\s*\n\s*/).filter((line) => line !== ""));
    assert.deepEqual(texts, [["Edit", "a.ts", "Denied: We still need it until June.", "Arguments"], ["Edit", "a.ts", "Denied.", "Arguments"]]);
    assert.deepEqual(await icons(), ["circle-slash", "circle-slash"]);
    await chat.page.locator(".toolCall summary").first().click();
    assert.match(await chat.page.locator(".toolCall").first().innerText(), /^Edit\s+a\.ts\s+denied$/);
  });

  it("29 show tokens only in the meter of the context, and the cost at the top", async () => {
    const usage = { input: 7136, output: 120, cacheRead: 0, cacheWrite: 0, reasoning: 0, cost: 4_000_000 };
    await reset({ items: [input(1, { text: "go" }), item(2, { text: "Done." })], ends: { trn_1: { turnId, outcome: { kind: "assistantMessage" }, usage } }, total: usage, context: usage });
    assert.deepEqual((await chat.page.locator("body").innerText()).split("\n").filter((text) => /token|Context|\$/i.test(text)), ["$0.0040", "Context 7.3k"]);
    assert.equal(await chat.page.locator(".row.end").getAttribute("title"), "7136 tokens in, 120 out, $0.0040");
  });

  it("46 open the output of the task that a call started, and say whether it runs", async () => {
    const server = (state: Task["state"]) => ({ taskId: "tsk_1", state, spec: { kind: "command", label: "the server", command: { script: "npm start" } }, origin: { sessionId: "ses_1", turnId } });
    const woken = item(3, { kind: "userMessage", text: "The task the server has ended.", origin: { kind: "process", inputId: "inp_2", cause: { id: "1", type: "task/completed", origin: "tsk_1" } } });
    await reset({ items: [call(1, "start_command", { command: "npm start", label: "the server" }, { output: { status: "success", text: "", value: { task: "tsk_1" } } }), call(2, "shell", { command: "ls" })], tasks: [server("running")] });
    const row = chat.page.locator(".row", { hasText: "Started npm start" });
    assert.equal(await row.locator("small").innerText(), "running");
    await tell({ type: "events", events: [{ type: "task/completed", seq: 1, atMs: 1, task: server("completed") } as never, { type: "item/completed", seq: 2, atMs: 1, turnId: "trn_2", item: woken } as never] });
    await row.getByText("completed", { exact: true }).waitFor();
    assert.equal(await chat.page.locator(".bubble").count(), 0); // a plugin wrote it
    const links = chat.page.getByRole("button", { name: "Show output" });
    assert.equal(await links.count(), 2);
    await links.first().click();
    await chat.page.locator(".row.wake").getByRole("button", { name: "Show output" }).click();
    assert.deepEqual(await asked("task"), [{ type: "task", taskId: "tsk_1" }, { type: "task", taskId: "tsk_1" }]);
  });

  it("22 show a call that a person made as a command with its output", async () => {
    const told = (text: string): Item => ({ itemId: "w", kind: "userMessage", status: "completed", atMs: 1, turnId: "trn_1", text: `[client/call shell] A person ran this tool with ${text}`, origin: { kind: "process", cause: { id: "call:c", type: "client/call", origin: "shell" } } });
    await reset({ items: [told('{"command":"curl -s http://a.test","outside":true}. The status is success. The output:\npong\n[Exit code 0.]')] });
    const row = chat.page.locator(".row.wake");
    assert.deepEqual([await row.locator("summary").innerText(), await row.locator("pre").innerText()], ["You ran curl -s http://a.test outside the sandbox", "pong\n[Exit code 0.]"]);
    await reset({ items: [told('{"path":"a". The status is failure. The output:\nno such file')] });
    assert.equal(await row.locator("summary").innerText(), "You ran shell: failure");
  });

  it("25 and 55 show all that belongs to an input in one bubble, also before it is stored, with one Undo", async () => {
    const digest = "sha256:1";
    const [quoted] = toInput("", [{ label: "src/a.ts:1-2", text: "one\ntwo" }]);
    const parts = [{ type: "text" as const, text: quoted?.text }, { type: "attachment" as const, attachment: { name: "shot.png", type: "image/png", digest } }, { type: "text" as const, text: "explain both" }];
    const accepted = (seq: number) => ({ type: "turn/accepted", seq, atMs: 1, turnId, inputIds: ["inp_1"], input: parts });
    const bubble = chat.page.locator(".userMessage .bubble");
    const shown = async () => [await chat.page.locator(".row").count(), await bubble.locator("a").innerText(), await bubble.locator(".text").innerText(), await bubble.locator("img.picture").count(), await chat.page.getByRole("button", { name: "Undo turn" }).count()];
    const whole = [1, " src/a.ts:1-2", "explain both", 1, 1];
    await reset();
    await tell({ type: "events", events: [accepted(1) as never] });
    await bubble.waitFor();
    assert.deepEqual(await shown(), whole);
    const stored = parts.map(({ text, attachment }, at) => ({ type: "item/completed", seq: 2 + at, atMs: 1, turnId, item: input(at, { itemId: `nod_1:${at}`, text, attachment }) }));
    await tell({ type: "events", events: stored as never });
    await drawn();
    assert.deepEqual(await shown(), whole);
    const height = () => bubble.locator("img").evaluate((e) => e.getBoundingClientRect().height);
    await tell({ type: "picture", digest, url: await chat.page.evaluate(() => Object.assign(document.createElement("canvas"), { width: 300, height: 200 }).toDataURL()) });
    assert.ok((await height()) < 70, "the picture is small");
    await bubble.getByRole("button", { name: "shot.png" }).click();
    assert.equal(await height() > 150, true, "a click makes it larger");
    await chat.page.locator(".userMessage").hover();
    await chat.page.getByRole("button", { name: "Undo turn" }).click();
    assert.deepEqual(await asked("rewind"), [{ type: "rewind", turnId, text: "explain both" }]);
  });

  it("32 ask about a call of a known tool in words, with its arguments folded if the question has them all", async () => {
    const question = (args: object): Decision => ({
      decisionId: "dec_1", sessionId: "ses_1", kind: "approval", prompt: "May it?", choices: ["allowOnce", "reject"], default: "reject", openedAtMs: 1, deadlineAtMs: 0,
      call: { callId: "c", name: "read", args }, detail: { title: titled("read", "src/order/total.ts"), why, editable: true },
    });
    const card = async () => [await chat.page.locator(".card .question b").innerText(), await chat.page.locator(".card details").evaluate((e: HTMLDetailsElement) => e.open)];
    await reset({ decisions: [question({ path: "src/order/total.ts" })] });
    assert.deepEqual(await card(), ["Read src/order/total.ts?", false]);
    await reset();
    await reset({ decisions: [question({ path: "src/order/total.ts", limit: 5 })] });
    assert.deepEqual(await card(), ["Read src/order/total.ts?", true]);
  });
});
