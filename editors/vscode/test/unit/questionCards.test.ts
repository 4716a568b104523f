import { strict as assert } from "node:assert";
import { parseHTML } from "linkedom";
import type { FromWebview } from "../../src/chat/messages";
import type { Decision } from "../../src/protocol";
import { Highlights } from "../../src/webview/highlights";
import { QuestionCards } from "../../src/webview/questionCards";

describe("part/11 questions of a chat", () => {
  before(() => {
    Object.assign(globalThis, { document: parseHTML("<html><body></body></html>").document });
  });
  after(() => {
    Reflect.deleteProperty(globalThis, "document");
  });

  it("show a question with its choices, disabled without a connection", () => {
    const decision: Decision = { decisionId: "dec_1", sessionId: "s", kind: "approval", prompt: "May it? The plugin guard asks: new file", choices: ["allowOnce", "allowSession", "allowAlways", "reject"], default: "reject", openedAtMs: 1, deadlineAtMs: 0 };
    const place = document.createElement("section");
    const posted: FromWebview[] = [];
    const asked = new QuestionCards(place, (message) => posted.push(message), () => undefined, new Highlights(() => undefined));
    asked.show([decision], true);
    assert.match(place.textContent ?? "", /The plugin guard asks: new file/);
    assert.deepEqual([...place.querySelectorAll("button")].map((b) => b.textContent), ["Allow once", "Deny", "More\u2026", "Allow for this session", "Always allow"]);
    assert.equal(place.querySelector(".more")?.hasAttribute("hidden"), true);
    place.querySelectorAll("button")[3]?.click();
    asked.failed();
    assert.equal(asked.key("KeyN"), true);
    assert.deepEqual(posted, [{ type: "answer", decisionId: "dec_1", choice: "allowSession" }, { type: "answer", decisionId: "dec_1", choice: "reject" }]);
    asked.show([decision], false);
    assert.deepEqual([...place.querySelectorAll("button")].map((b) => b.hasAttribute("disabled")), [true, true, false, true, true]);
    asked.show([], true);
    assert.equal(place.childElementCount, 0);
  });

  it("part13/6 show the host of a page, and do not take a text as the answer", () => {
    const decision: Decision = {
      decisionId: "dec_1", sessionId: "s", kind: "question", prompt: "The server asks.\n\nHost: a.example\nAddress: https://a.example/pay?x=1", url: "https://a.example/pay?x=1", choices: ["open", "reject"],
      default: "unavailable", openedAtMs: 1, deadlineAtMs: 0,
    };
    const card = opened(decision);
    assert.equal(card.place.querySelector(".question")?.textContent, "The server asks.");
    assert.equal(card.place.querySelector(".page")?.textContent, "https://a.example/pay?x=1");
    assert.equal(card.place.querySelector(".page b")?.textContent, "a.example");
    assert.deepEqual(card.buttons(), ["Open the page", "Deny"]);
    card.click("Open the page");
    assert.deepEqual(card.posted, [{ type: "answer", decisionId: "dec_1", choice: "open" }]);
  });

  const why = { by: "rule" as const, text: "The rule decides." };
  const approval = (detail: Decision["detail"], tool = "shell", args: object = { command: "npm test" }): Decision => ({
    decisionId: "dec_1", sessionId: "s", kind: "approval", prompt: "May it?", choices: ["allowOnce", "allowSession", "allowAlways", "reject"], default: "reject", openedAtMs: 1, deadlineAtMs: 0,
    call: { callId: "c", name: tool, args }, detail,
  });
  const opened = (decision: Decision) => {
    const place = document.createElement("section");
    const posted: FromWebview[] = [];
    const asked = new QuestionCards(place, (message) => posted.push(message), () => undefined, new Highlights(() => undefined));
    asked.show([decision], true);
    const buttons = () => [...place.querySelectorAll("button")].map((b) => b.textContent);
    const click = (text: string) => [...place.querySelectorAll("button")].find((b) => b.textContent === text)?.click();
    return { place, posted, buttons, click, failed: () => asked.failed() };
  };

  it("part/11 show a command, and send a width, an edited command or a reason", () => {
    const widths = [{ text: "commands that begin with npm test", rule: { action: "allow" as const } }];
    const card = opened(approval({ command: { command: "npm test", dir: "/work", outside: true }, hosts: ["a.example"], why: { ...why, by: "outside" }, editable: true, widths }));
    assert.equal(card.place.querySelector(".question b")?.textContent, "Run outside the sandbox?");
    assert.equal(card.place.querySelector(".command")?.textContent, "npm test");
    assert.match(card.place.textContent ?? "", /Network: a\.example.*The rule decides\./s);
    assert.deepEqual(card.buttons(), ["Allow once", "Deny", "More\u2026", "Allow for this session", "Always allow", "Edit\u2026", "Deny with a reason\u2026"]);
    card.click("Always allow");
    assert.deepEqual([...card.place.querySelectorAll(".widths label")].map((one) => one.textContent), ["commands that begin with npm test", "exactly this call"]);
    card.click("Allow");
    card.failed();
    card.click("Back");
    card.click("Edit\u2026");
    (card.place.querySelector("textarea") as HTMLTextAreaElement).value = "npm run check";
    card.click("Run once");
    card.failed();
    card.click("Back");
    card.click("Deny with a reason\u2026");
    (card.place.querySelector("textarea") as HTMLTextAreaElement).value = " use make ";
    card.click("Deny");
    const answer = { type: "answer", decisionId: "dec_1" };
    assert.deepEqual(card.posted, [{ ...answer, choice: "allowAlways", width: 0 }, { ...answer, choice: "allowOnce", args: { command: "npm run check" } }, { ...answer, choice: "reject", reason: "use make" }]);
  });

  it("part13/vscode need no choice if a lasting answer can only cover the same command, and say why", () => {
    const card = opened(approval({ command: { command: "node test.js", dir: "/work" }, why, editable: true }, "shell", { command: "node test.js" }));
    card.click("Always allow");
    assert.equal(card.place.querySelector("input"), null);
    assert.match(card.place.textContent ?? "", /Always allow in this workspace: exactly this call\. Wider rules are offered only for programs that do one job/);
    card.click("Allow");
    assert.deepEqual(card.posted, [{ type: "answer", decisionId: "dec_1", choice: "allowAlways" }]);
  });

  it("part/11 show a diff whose changes can be taken or left", () => {
    const hunk = (start: number) => ({ oldStart: start, oldLines: 1, newStart: start, newLines: 1, text: "-old\n+new\n" });
    const card = opened(approval({ files: [{ path: "a.txt", kind: "change", added: 2, removed: 2, hunks: [hunk(1), hunk(9)] }], why, editable: true }, "edit", { path: "a.txt" }));
    assert.equal(card.place.querySelector(".question b")?.textContent, "Change a.txt?");
    assert.deepEqual([...card.place.querySelectorAll(".diff > span")].map((one) => one.textContent), ["1- old\n", "1+ new\n", "9- old\n", "9+ new\n"]);
    const boxes = [...card.place.querySelectorAll("input")];
    boxes[0]!.checked = false;
    boxes[0]!.dispatchEvent(new (boxes[0]!.ownerDocument.defaultView!.Event)("change"));
    assert.deepEqual(card.buttons(), ["Open diff", "Allow 1 of 2 changes", "Deny", "More\u2026", "Allow 1 of 2 changes with a reason\u2026", "Deny with a reason\u2026"]);
    card.click("Open diff");
    card.click("Allow 1 of 2 changes");
    const answer = { type: "answer", decisionId: "dec_1", choice: "allowOnce", hunks: [1] };
    assert.deepEqual(card.posted.splice(0), [{ type: "preview", decisionId: "dec_1", file: 0 }, answer]);
    card.failed();
    card.click("Allow 1 of 2 changes with a reason\u2026");
    assert.match(card.place.textContent ?? "", /Reason for the agent to leave out the other changes/);
    (card.place.querySelector("textarea") as HTMLTextAreaElement).value = " keep the name ";
    card.click("Allow 1 of 2 changes");
    assert.deepEqual(card.posted, [{ ...answer, reason: "keep the name" }]);
  });

  it("part/11 say what a diff does not show, and open the arguments of other tools", () => {
    const cut = opened(approval({ files: [{ path: "a.txt", kind: "create", added: 900, cut: true, hunks: [{ oldStart: 0, oldLines: 0, newStart: 1, newLines: 1, text: "+x\n" }] }], why }));
    assert.equal(cut.place.querySelector(".missing")?.textContent, "The diff is too long: 899 changed lines are not in it.");
    const other = opened(approval({ why }, "mcp_post", { title: "x" }));
    assert.equal(other.place.querySelector("details")?.hasAttribute("open"), true);
    assert.equal(cut.place.querySelector("details")?.hasAttribute("open"), false);
  });
});
