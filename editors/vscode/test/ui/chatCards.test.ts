import { strict as assert } from "node:assert";
import type { Browser, Page } from "playwright-core";
import type { FromWebview, ToWebview } from "../../src/chat/messages";
import { snapshot } from "../../src/model/session";
import type { Config, Decision } from "../../src/protocol";
import { attached, session } from "../unit/turn";
import { launch, openPage, patienceMs } from "./browser";

const why = { by: "mode" as const, text: "No rule allows the call, and the tool can change something." };
const decision: Decision = {
  decisionId: "dec_1", sessionId: "ses_1", kind: "approval", prompt: "May it?", choices: ["allowOnce", "reject"], default: "reject", openedAtMs: 1, deadlineAtMs: 0,
  call: { callId: "c", name: "shell", args: { command: "npm test" } }, detail: { command: { command: "npm test", dir: "/work" }, why, editable: true },
};

describe("part15 cards and settings of a chat", function () {
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
  const reset = (more: object = {}, config: Partial<Config> = {}) =>
    tell({ type: "reset", view: { ...snapshot({ ...attached, session: { ...session, config: { ...session.config, ...config } } }), ...more }, options: { sendOnEnter: true, showReasoning: false }, connected: true, left: {} });
  const asked = (...types: FromWebview["type"][]) => page.evaluate((wanted) => window.asked.filter(({ type }) => wanted.includes(type)), types);

  const more = () => page.getByRole("button", { name: "More\u2026" }).click();

  it("36 go back with Escape, which stops the turn only in the input", async () => {
    await reset({ turnId: "trn_1", decisions: [decision] });
    await more();
    for (const name of ["Deny with a reason\u2026", "Edit\u2026"]) {
      await page.getByRole("button", { name }).click();
      await page.locator("#asked textarea").press("Escape");
      await page.getByRole("button", { name: "Allow once" }).waitFor();
      assert.equal(await page.locator("#asked textarea").count(), 0);
    }
    assert.deepEqual([await asked("stop", "answer"), await page.evaluate(() => document.activeElement?.className)], [[], "card"]);
    await page.locator("#composer textarea").press("Escape");
    assert.deepEqual(await asked("stop", "answer"), [{ type: "stop" }]);
  });

  it("36 leave a field with Escape without telling VS Code of the key", async () => {
    await reset({ turnId: "trn_1", decisions: [decision] });
    await page.evaluate(() => window.addEventListener("keydown", (event) => (document.title += ` ${event.key}`)));
    await more();
    await page.getByRole("button", { name: "Deny with a reason\u2026" }).click();
    await page.locator("#asked textarea").press("Escape");
    await page.locator("#composer textarea").press("x");
    assert.equal(await page.title(), "lashd x");
  });

  it("37 deny with Enter, and start a new line of the reason with Shift+Enter", async () => {
    await reset({ turnId: "trn_1", decisions: [decision] });
    await more();
    await page.getByRole("button", { name: "Deny with a reason\u2026" }).click();
    await page.keyboard.type("first");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("second");
    await page.keyboard.press("Enter");
    assert.deepEqual(await asked("answer"), [{ type: "answer", decisionId: "dec_1", choice: "reject", reason: "first\nsecond" }]);
  });

  it("37 answer a question of a tool with Enter", async () => {
    await reset({ turnId: "trn_1", decisions: [{ ...decision, kind: "question", detail: undefined, choices: ["answer", "cancelled"], form: { type: "string" } } as never] });
    await page.locator("#asked textarea").fill("blue");
    await page.locator("#asked textarea").press("Enter");
    assert.deepEqual(await asked("answer"), [{ type: "answer", decisionId: "dec_1", choice: "answer", value: "blue" }]);
  });

  it("5 and 31 show the mode and the sandbox as two menus, which say what lashd asks about", async () => {
    await reset({}, { approval: { sandbox: "workspace" } });
    const [mode, sandbox] = [page.getByRole("button", { name: "Mode: Edit without asking" }), page.getByRole("button", { name: "Sandbox: workspace" })];
    assert.deepEqual([await mode.innerText(), await sandbox.innerText()], ["Edit without asking", "Sandbox: workspace"]);
    assert.match((await mode.getAttribute("title")) ?? "", /^Edits files of this folder without a question\. Commands run in a sandbox/);
    assert.deepEqual([await mode.locator(".codicon-shield, .codicon-chevron-down").count(), await sandbox.locator(".codicon-lock, .codicon-chevron-down").count()], [2, 2]);
    await mode.click();
    await sandbox.click();
    assert.deepEqual(await asked("run"), [{ type: "run", command: "chooseMode" }, { type: "run", command: "chooseSandbox" }]);
  });

  it("7 say in a new chat what lashd asks about in this session", async () => {
    const asks = page.locator("#welcome .asks");
    await reset({}, { approval: { sandbox: "workspace" } });
    assert.equal(await asks.innerText(), "Edit without asking. Edits files of this folder without a question. Commands run in a sandbox without a question, and can change this folder. Change\u2026");
    await reset({}, { approval: { sandbox: "fullAccess" } });
    assert.equal(await asks.innerText(), "Ask before edits. Asks before each edit of a file. Asks before each command. Change\u2026");
    await asks.getByRole("button", { name: "Change\u2026" }).click();
    assert.deepEqual(await asked("run"), [{ type: "run", command: "chooseMode" }]);
  });
});
