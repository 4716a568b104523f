import { strict as assert } from "node:assert";
import { toInput } from "../../src/model/input";
import type { Decision, Item } from "../../src/protocol";
import { snapshot } from "../../src/model/session";
import { attached, session } from "../unit/turn";
import { chatPage } from "./chatPage";

const why = { by: "mode" as const, text: "No rule allows the call, and the tool can change something." };
const decision: Decision = {
  decisionId: "dec_1", sessionId: "ses_1", kind: "approval", prompt: "May it?", choices: ["allowOnce", "reject"], default: "reject", openedAtMs: 1, deadlineAtMs: 0,
  call: { callId: "c", name: "shell", args: { command: "npm test" } }, detail: { command: { command: "npm test", dir: "/work" }, why, editable: true },
};

describe("part15 cards and settings of a chat", function () {
  const chat = chatPage(this);
  const { reset, tell, asked } = chat;

  const more = () => chat.page.getByRole("button", { name: "More\u2026" }).click();

  it("36 go back with Escape, which stops the turn only in the input", async () => {
    await reset({ turnId: "trn_1", decisions: [decision] });
    await more();
    for (const name of ["Deny with a reason\u2026", "Edit\u2026"]) {
      await chat.page.getByRole("button", { name }).click();
      await chat.page.locator("#asked textarea").press("Escape");
      await chat.page.getByRole("button", { name: "Allow once" }).waitFor();
      assert.equal(await chat.page.locator("#asked textarea").count(), 0);
    }
    assert.deepEqual([await asked("stop", "answer"), await chat.page.evaluate(() => document.activeElement?.className)], [[], "card"]);
    await chat.page.locator("#composer textarea").press("Escape");
    assert.deepEqual(await asked("stop", "answer"), [{ type: "stop" }]);
  });

  it("36 leave a field with Escape without telling VS Code of the key", async () => {
    await reset({ turnId: "trn_1", decisions: [decision] });
    await chat.page.evaluate(() => window.addEventListener("keydown", (event) => (document.title += ` ${event.key}`)));
    await more();
    await chat.page.getByRole("button", { name: "Deny with a reason\u2026" }).click();
    await chat.page.locator("#asked textarea").press("Escape");
    await chat.page.locator("#composer textarea").press("x");
    assert.equal(await chat.page.title(), "lashd x");
  });

  it("37 deny with Enter, and start a new line of the reason with Shift+Enter", async () => {
    await reset({ turnId: "trn_1", decisions: [decision] });
    await more();
    await chat.page.getByRole("button", { name: "Deny with a reason\u2026" }).click();
    await chat.page.keyboard.type("first");
    await chat.page.keyboard.press("Shift+Enter");
    await chat.page.keyboard.type("second");
    await chat.page.keyboard.press("Enter");
    assert.deepEqual(await asked("answer"), [{ type: "answer", decisionId: "dec_1", choice: "reject", reason: "first\nsecond" }]);
  });

  it("37 answer a question of a tool with Enter", async () => {
    await reset({ turnId: "trn_1", decisions: [{ ...decision, kind: "question", detail: undefined, choices: ["answer", "cancelled"], form: { type: "string" } } as never] });
    await chat.page.locator("#asked textarea").fill("blue");
    await chat.page.locator("#asked textarea").press("Enter");
    assert.deepEqual(await asked("answer"), [{ type: "answer", decisionId: "dec_1", choice: "answer", value: "blue" }]);
  });

  it("5 and 31 show the mode and the sandbox as two menus, which say what lashd asks about", async () => {
    await reset({}, { approval: { sandbox: "workspace" } });
    const [mode, sandbox] = [chat.page.getByRole("button", { name: "Mode: Edit without asking" }), chat.page.getByRole("button", { name: "Sandbox: workspace" })];
    assert.deepEqual([await mode.innerText(), await sandbox.innerText()], ["Edit without asking", "Sandbox: workspace"]);
    assert.match((await mode.getAttribute("title")) ?? "", /^Mode: Edit without asking\. Edits this folder\. Does not ask before commands, which can change this folder/);
    assert.deepEqual([await mode.locator(".codicon-shield, .codicon-chevron-down").count(), await sandbox.locator(".codicon-lock, .codicon-chevron-down").count()], [2, 2]);
    assert.equal(await chat.page.locator(".warning").count(), 0);
    await mode.click();
    await sandbox.click();
    await reset({}, { approval: { sandbox: "fullAccess" } });
    assert.equal(await chat.page.getByRole("button", { name: "Sandbox: No sandbox" }).and(chat.page.locator(".warning")).locator(".codicon-unlock").count(), 1);
    assert.deepEqual(await asked("run"), [{ type: "run", command: "chooseMode" }, { type: "run", command: "chooseSandbox" }]);
  });

  it("25 and 35 show an attached selection as a chip that opens the file, and offer Undo at the end of the newest turn", async () => {
    const item = (n: number, turnId: string, text: string, kind: Item["kind"] = "userMessage"): Item => ({ itemId: `nod_${n}:0`, kind, status: "completed", atMs: n, turnId, text, origin: { kind: "turnInput", inputId: turnId } });
    const [quoted] = toInput("", [{ label: "src/discount.ts:1-3", text: "one\ntwo\n```three\n" }]);
    const items = [item(1, "trn_1", "first"), item(2, "trn_1", "Done.", "agentMessage"), item(3, "trn_2", quoted?.text ?? ""), item(4, "trn_2", "explain it"), item(5, "trn_2", "It is so.", "agentMessage")];
    const end = (turnId: string) => ({ turnId, outcome: { kind: "assistantMessage" } });
    await reset({ items, ends: { trn_1: end("trn_1"), trn_2: end("trn_2") } });
    const attachedText = chat.page.locator(".userMessage .quoted");
    assert.deepEqual([await attachedText.locator("a").innerText(), await attachedText.locator("summary").innerText(), await attachedText.locator("pre").count()], [" src/discount.ts:1-3", "3 lines", 0]);
    await attachedText.locator("summary").click();
    assert.equal(await attachedText.locator("pre").innerText(), "one\ntwo\n```three");
    await attachedText.locator("a").click();
    assert.deepEqual(await asked("open"), [{ type: "open", href: "src/discount.ts:1" }]);
    assert.equal(await chat.page.getByRole("button", { name: "Undo turn" }).count(), 2); // one for each turn
    const opacity = await chat.page.locator(".end .actions").evaluateAll((all) => all.map((one) => getComputedStyle(one).opacity));
    assert.deepEqual(opacity, ["0", "1"]);
    await chat.page.locator(".end.last").getByRole("button", { name: "Undo\u2026" }).click();
    assert.deepEqual(await asked("rewind"), [{ type: "rewind", turnId: "trn_2", text: "explain it" }]);
  });

  it("part13 lets only the extension open a link of a model, which asks before it opens an address", async () => {
    const text = "[docs](https://evil.example/?q=secret) [set up](vscode://some.extension/run)";
    await reset({ items: [{ itemId: "nod_1:0", kind: "agentMessage", status: "completed", atMs: 1, text }] });
    await chat.page.evaluate(() => window.addEventListener("click", ({ target }) => (document.title = `VS Code opens ${(target as Element).textContent}`))); // as its script does, which opens addresses without a question
    const title = await chat.page.title();
    await chat.page.getByRole("link", { name: "docs" }).click();
    await chat.page.getByRole("link", { name: "set up" }).click();
    assert.deepEqual(await asked("open"), [{ type: "open", href: "https://evil.example/?q=secret" }, { type: "open", href: "vscode://some.extension/run" }]);
    assert.equal(await chat.page.title(), title);
  });

  it("33 name the changed line of each change, and dim a change that is left out", async () => {
    const hunk = (start: number) => ({ oldStart: start, oldLines: 3, newStart: start, newLines: 3, text: " a\n b\n-old\n+new\n" });
    const files = [{ path: "a.txt", kind: "change", added: 2, removed: 2, hunks: [hunk(1), hunk(20)] }];
    await reset({ decisions: [{ ...decision, call: { ...decision.call, name: "edit" }, detail: { files, why, editable: true } } as never] });
    assert.deepEqual(await chat.page.locator(".card .file label").allInnerTexts(), ["Change 1, line 3", "Change 2, line 22"]);
    await chat.page.getByRole("checkbox").nth(1).uncheck();
    assert.equal(await chat.page.locator(".diff.left").evaluate((e) => getComputedStyle(e).whiteSpace), "pre", "a change that is left out keeps its indentation");
    assert.deepEqual(await chat.page.locator(".card .diff").evaluateAll((all) => all.map((one) => getComputedStyle(one).opacity)), ["1", "0.5"]);
  });

  it("7 say in a new chat what lashd asks about in this session", async () => {
    const asks = chat.page.locator("#welcome .asks");
    await reset({}, { approval: { sandbox: "workspace" } });
    assert.equal(await asks.innerText(), "Edit without asking. Edits this folder. Does not ask before commands, which can change this folder. Change\u2026");
    await reset({}, { approval: { sandbox: "fullAccess" } });
    assert.equal(await asks.innerText(), "Ask before edits. Asks before edits. Asks before commands. Change\u2026");
    await asks.getByRole("button", { name: "Change\u2026" }).click();
    assert.deepEqual(await asked("run"), [{ type: "run", command: "chooseMode" }]);
  });

  it("33 say in a new chat which parts of the folder wait for approval, until they are approved", async () => {
    const line = chat.page.locator("#welcome .untrusted");
    const inert = "This workspace has skills, commands, agents, hooks, MCP servers, permissions or plugins that do nothing until you approve them.";
    await reset();
    assert.equal(await line.innerText(), "");
    await tell({ type: "untrusted", plugins: ["project"] });
    assert.equal((await line.innerText()).trim(), `${inert} Review\u2026`);
    await line.getByRole("button", { name: "Review\u2026" }).click();
    await tell({ type: "untrusted", plugins: ["project", "x\u202e\ny"] });
    await line.getByRole("button", { name: "Review x\\u202e\\ny\u2026" }).click();
    assert.deepEqual((await asked("review")).map(({ plugin }) => plugin), ["project", "x\u202e\ny"]);
    await tell({ type: "untrusted", plugins: [] });
    assert.equal(await line.innerText(), "");
  });

  it("29 show the title of a session where its place has none, and of which session it is a fork", async () => {
    const title = chat.page.locator("#head h1");
    const height = async () => (await title.boundingBox())?.height ?? 0;
    const view = snapshot({ ...attached, session: { ...session, title: "hello (fork)", relation: { kind: "fork", source: { sessionId: "ses_0", node: "nod_u" } } } });
    const items: Item[] = [{ itemId: "nod_u:0", kind: "userMessage", status: "completed", turnId: "trn_1", atMs: 1, text: "hi" }];
    const shown = { type: "reset" as const, view: { ...view, items }, options: { sendOnEnter: true, showReasoning: false }, connected: true, left: {} };
    await tell(shown);
    assert.ok((await height()) < 2, "a tab has the title already");
    await chat.page.evaluate(() => document.body.classList.add("untitled"));
    assert.equal(await title.innerText(), "hello (fork)");
    assert.ok((await height()) > 10);
    assert.equal((await chat.page.locator(".row.fork").innerText()).trim(), "Forked from another session.");
    await tell({ ...shown, origin: "hello" });
    assert.equal((await chat.page.locator(".row.fork").innerText()).trim(), "Forked from hello.");
    await chat.page.locator(".row.fork").getByRole("button", { name: "hello" }).click();
    assert.deepEqual(await asked("show"), [{ type: "show", sessionId: "ses_0" }]);
  });
});
