import { strict as assert } from "node:assert";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import type { AuditListResult, DecisionListResult, RuleListResult, SessionID, SessionListResult } from "../../src/protocol";
import { patienceMs } from "./browser";
import { freePort } from "./machine";
import { diffLines, titleButton } from "./diffEditor";
import { script } from "./script";
import { Workbench } from "./workbench";

/** lines returns numbered lines. */
const lines = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => `line ${from + i}\n`).join("");

describe("part/11 approvals in a real VS Code", function () {
  this.timeout(3 * patienceMs);
  this.retries(1); // a browser, an editor and a daemon compete for the CPU
  const code = new Workbench();
  const site = createServer((_, response) => response.end("from the site"));
  let host = "";

  /** refused returns the turn of a command to which the sandbox refuses something. */
  const refused = (match: string, command: string) => ({
    match: { lastUserContains: match },
    replies: [{ toolCalls: [{ name: "shell", args: { command } }] }, { text: "It was refused." }],
  });
  const newest = (): SessionID => code.call<SessionListResult>("session/list", {}).data[0]?.sessionId ?? "";
  /** audited returns who decided about each call of a session, and where it ran. */
  const audited = (sessionId: SessionID) =>
    code.call<AuditListResult>("audit/list", { sessionId }).data.map(({ kind, why, granted = [] }) => [kind, why.by, ...granted].join(" "));

  before(async () => {
    const port = await freePort();
    host = `127.0.0.1:${port}`;
    site.listen(port, "127.0.0.1");
    const told = { match: { lastUserContains: "A person ran this tool" }, replies: [{ text: "I see what it did." }] };
    const fetching = refused("fetch it", `curl -s --noproxy '' http://${host}/ > fetched.txt || true`);
    const turns = [told, refused("leave a mark", "echo marked >> .vscode/made"), fetching, ...script.turns];
    await code.start({ ...script, turns }, { ownMode: true });
    mkdirSync(join(code.work, ".vscode"), { recursive: true });
  });
  afterEach(async function () {
    await code.shot(`${this.currentTest?.state ?? "none"} ${this.currentTest?.title ?? ""}`);
  });
  after(async () => {
    site.close();
    await code.close();
  });

  it("shows the diff of an edit, and makes only the changes that were taken", async () => {
    const [before, after] = [lines(1, 30), lines(1, 30).replace("line 2\n", "LINE TWO\n").replace("line 28\n", "LINE 28\n")];
    writeFileSync(join(code.work, "long.txt"), before);
    await code.newSession();
    code.call("session/configure", { sessionId: newest(), approval: { sandbox: "fullAccess" } });
    await code.say("patch both");
    const card = code.chat.locator("#asked .card");
    await card.getByText("Change long.txt?").waitFor();
    await card.getByText(/^Denies automatically in \d+:\d\d$/).waitFor();
    assert.deepEqual(await card.locator(".diff .added").allInnerTexts().then((all) => all.map((text) => text.trim())), ["2+ LINE TWO", "28+ LINE 28"]);
    await code.shot("approval diff");
    await card.getByRole("button", { name: "Open diff" }).click();
    const { before: left, after: right } = await diffLines(code.page, "LINE TWO");
    assert.deepEqual([left.slice(0, 3), right.slice(0, 3)], [["line 1", "line 2", "line 3"], ["line 1", "LINE TWO", "line 3"]]);
    await code.shot("approval editor");
    await code.page.keyboard.press("Control+w");
    await card.getByRole("checkbox").nth(1).uncheck();
    await card.getByRole("button", { name: "Allow 1 of 2 changes" }).click();
    await code.chat.locator(".agentMessage", { hasText: "Patched." }).waitFor();
    assert.equal(readFileSync(join(code.work, "long.txt"), "utf8"), after.replace("LINE 28\n", "line 28\n"));
    assert.equal(await code.chat.locator(".toolCall .decided summary").innerText(), "Allowed only 1 change. The others were denied.");
  });

  it("allows and denies a proposed change in the title of its editor, which closes when the question is answered anywhere", async () => {
    const long = join(code.work, "long.txt");
    const [before, after] = [lines(1, 30), lines(1, 30).replace("line 2\n", "LINE TWO\n").replace("line 28\n", "LINE 28\n")];
    writeFileSync(long, before);
    await code.newSession();
    code.call("session/configure", { sessionId: newest(), approval: { sandbox: "fullAccess" } });
    const card = code.chat.locator("#asked .card");
    const tab = code.page.locator(".tab", { hasText: "long.txt (proposed change)" });
    const propose = async () => {
      await code.say("patch both");
      await card.getByRole("button", { name: "Open diff" }).click();
      await diffLines(code.page, "LINE TWO");
    };
    const ended = async (turns: number) => {
      await tab.waitFor({ state: "detached" });
      await code.chat.locator(".row.end").nth(turns - 1).waitFor();
      return readFileSync(long, "utf8");
    };
    await propose();
    assert.equal(await code.page.locator(".notification-toast").count(), 0); // the editor has the answers
    await code.shot("proposed change");
    await titleButton(code.page, "Deny").click();
    assert.equal(await ended(1), before);
    await propose();
    await code.page.locator(".tab", { hasText: "patch both" }).last().click();
    await card.getByRole("button", { name: "Deny", exact: true }).click();
    assert.equal(await ended(2), before);
    await propose();
    const { decisionId } = code.call<DecisionListResult>("decision/list", {}).data[0] ?? {};
    code.call("decision/respond", { decisionId, choice: "reject" });
    assert.equal(await ended(3), before);
    await propose();
    await titleButton(code.page, "Allow Once").click();
    assert.equal(await ended(4), after);
  });

  it("edits a command before it runs, denies with a reason, and allows always with a width", async () => {
    await code.newSession();
    const card = code.chat.locator("#asked .card");
    await code.say("leave once");
    await card.getByText("Run outside the sandbox?").waitFor();
    await code.shot("approval command");
    await card.getByRole("button", { name: "More\u2026" }).click();
    await card.getByRole("button", { name: "Edit\u2026" }).click();
    await card.getByRole("textbox").fill("echo changed > edited.txt");
    await card.getByRole("button", { name: "Run once" }).click();
    await code.chat.locator(".agentMessage", { hasText: "Left." }).waitFor();
    assert.equal(readFileSync(join(code.work, "edited.txt"), "utf8"), "changed\n");
    await code.say("leave again");
    await card.getByRole("button", { name: "More\u2026" }).click();
    await card.getByRole("button", { name: "Deny with a reason\u2026" }).click();
    await card.getByRole("textbox").fill("stay inside");
    await card.getByRole("button", { name: "Deny", exact: true }).click();
    await code.chat.locator(".agentMessage", { hasText: "I stay inside." }).waitFor();
    await code.say("leave for git");
    await card.getByRole("button", { name: "More\u2026" }).click();
    await card.getByRole("button", { name: "Always allow" }).click();
    await card.getByRole("radiogroup").getByText("git status").waitFor();
    await code.shot("approval widths");
    await card.getByRole("button", { name: "Allow", exact: true }).click();
    await code.chat.locator(".agentMessage", { hasText: "Status seen." }).waitFor();
    await code.say("leave for git");
    await code.chat.locator(".agentMessage", { hasText: "Status seen." }).nth(1).waitFor();
    assert.equal(await card.count(), 0);
  });

  it("part15/23 edits in the sandbox without a question, says so, and asks before edits if the user chooses that", async () => {
    const written = join(code.work, "new.txt");
    const [card, mode] = [code.chat.locator("#asked .card"), code.chat.getByRole("button", { name: /^Mode: / })];
    rmSync(written, { force: true });
    await code.newSession();
    assert.deepEqual([await mode.innerText(), await code.chat.getByRole("button", { name: /^Sandbox: / }).innerText()], ["Edit without asking", "Sandbox: workspace"]);
    assert.equal(await code.chat.locator("#welcome .asks").innerText(), "Edit without asking. Edits this folder. Does not ask before commands, which can change this folder. Change\u2026");
    await code.say("write a file");
    await code.chat.locator(".agentMessage", { hasText: "Written." }).waitFor();
    assert.deepEqual([readFileSync(written, "utf8"), await card.count()], ["x\ny\n", 0]);

    rmSync(written);
    await mode.click();
    await code.choose(/Ask before edits(?! and)/);
    await code.chat.getByRole("button", { name: "Mode: Ask before edits" }).waitFor();
    await code.say("write a file");
    await card.getByText("Create new.txt?").waitFor();
    assert.equal(existsSync(written), false);
    assert.equal(await card.locator(".why").innerText(), "The mode \u201cAsk before edits\u201d of this session asks.");
    await code.shot("approval before an edit");
    await card.getByRole("button", { name: "Deny", exact: true }).click();
    await code.chat.locator(".row.end").nth(1).waitFor();
    assert.equal(existsSync(written), false);

    await mode.click();
    await code.choose("Ask before edits and commands");
    await code.chat.getByRole("button", { name: "Mode: Ask before edits and commands" }).waitFor();
    await code.say("leave a mark"); // a command in the sandbox, which the other modes run without a question
    await card.locator(".why", { hasText: "The mode \u201cAsk before edits and commands\u201d of this session asks." }).waitFor();
    await card.getByRole("button", { name: "Deny", exact: true }).click();
    await code.chat.locator(".row.end").nth(2).waitFor();
  });

  it("part15/36 goes back from the reason with Escape without stopping the turn, and denies with Enter", async () => {
    await code.newSession();
    const card = code.chat.locator("#asked .card");
    await code.say("leave again");
    await card.getByRole("button", { name: "More\u2026" }).click();
    await card.getByRole("button", { name: "Deny with a reason\u2026" }).click();
    await card.getByRole("textbox").press("Escape");
    await card.getByRole("button", { name: "Allow once" }).waitFor();
    await card.getByRole("button", { name: "Deny with a reason\u2026" }).click();
    await card.getByRole("textbox").fill("stay inside");
    await card.getByRole("textbox").press("Enter");
    await code.chat.locator(".agentMessage", { hasText: "I stay inside." }).waitFor();
    assert.equal(await code.chat.getByText("Stopped.").count(), 0);
  });

  it("runs a refused call once outside the sandbox", async () => {
    rmSync(join(code.work, ".vscode/made"), { force: true });
    await code.newSession();
    await code.say("leave a mark");
    await code.chat.locator(".agentMessage", { hasText: "It was refused." }).waitFor();
    await code.chat.getByText("The command ran in a sandbox, and it cannot change .vscode/made, because editors, shells or git start programs from there.").waitFor();
    assert.throws(() => readFileSync(join(code.work, ".vscode/made")));
    await code.shot("approval refused");
    await code.chat.getByRole("button", { name: "Run once outside the sandbox" }).click();
    await code.chat.locator(".agentMessage", { hasText: "I see what it did." }).waitFor();
    await code.shot("approval ran outside");
    assert.equal(readFileSync(join(code.work, ".vscode/made"), "utf8"), "marked\n");
    assert.deepEqual(audited(newest()), ["refused sandbox", "outside client"]);
  });

  it("adds a rule, the daemon has it, and a call runs once with the host that it lacked", async () => {
    const rules = () => code.call<RuleListResult>("rule/list", { cwd: code.work }).data.map(({ level, rule }) => [level, rule.action, rule.host ?? rule.command].join(" "));
    const title = (text: string) => code.page.locator(".quick-input-widget:visible .quick-input-title", { hasText: text });
    await code.newSession();
    await code.run("lashd: Rules...");
    await title("Approval rules").waitFor();
    await code.choose("Add a rule");
    await title("Add a rule").waitFor();
    await code.page.locator(".quick-input-widget:visible input.input").fill("allow host x.test");
    await code.page.keyboard.press("Enter");
    await title('Where does "allow host x.test" apply?').waitFor();
    await code.choose("In this workspace");
    await code.page.getByText("lashd: added the rule: allow host x.test").first().waitFor();
    assert.ok(rules().includes("workspace allow x.test"), rules().join("\n"));

    await code.run("lashd: Rules...");
    await code.choose("Try a command");
    await title("Try a command; nothing runs").waitFor();
    await code.page.locator(".quick-input-widget:visible input.input").fill("touch tried");
    await code.page.keyboard.press("Enter");
    await code.page.getByText("lashd would run it.").first().waitFor();
    assert.throws(() => readFileSync(join(code.work, "tried")));

    await code.say("fetch it");
    await code.chat.locator(".agentMessage", { hasText: "It was refused." }).waitFor();
    await code.shot("approval without host");
    await code.chat.getByRole("button", { name: `Run once with ${host}` }).click();
    await code.chat.locator(".agentMessage", { hasText: "I see what it did." }).waitFor();
    assert.equal(readFileSync(join(code.work, "fetched.txt"), "utf8"), "from the site");
    assert.deepEqual(audited(newest()), ["refused sandbox", `allowed client ${host}`]);

    await code.run("lashd: Rules...");
    const row = code.page.locator(".quick-input-list .monaco-list-row", { hasText: "allow host x.test" });
    await row.waitFor();
    await code.shot("approval rules");
    await row.hover();
    await row.locator(".codicon-trash").click();
    await row.waitFor({ state: "detached" });
    assert.ok(!rules().includes("workspace allow x.test"), rules().join("\n"));
    await code.page.getByText("lashd: removed the rule: allow host x.test").first().waitFor();
    await code.page.keyboard.press("Escape");
  });
});
