import { strict as assert } from "node:assert";
import { questionText, wholeText } from "../../src/decisionText";
import { linesOf, timeLeft, timesOf, widthsOf } from "../../src/model/approvals";
import { applyHunks, hunkOf } from "../../src/model/diff";
import type { ApprovalDetail, Decision, Session } from "../../src/protocol";

const why = { by: "rule" as const, text: "The rule `ask command npm` of the user decides." };

function approval(name: string, args: object, detail?: ApprovalDetail): Decision {
  return { decisionId: "dec_1", sessionId: "s", kind: "approval", prompt: "May it?", call: { callId: "c", name, args }, choices: [], default: "reject", openedAtMs: 1, deadlineAtMs: 0, ...(detail && { detail }) };
}

const session = { cwd: "/work", config: { approval: { sandbox: "workspace" } } } as Session;
const command = (dir: string, outside?: boolean) => approval("shell", { command: "npm test\nls", timeoutMs: 5 }, { command: { command: "npm test\nls", dir, ...(outside && { outside }) }, why, hosts: ["a.example"] });
const files = approval("edit", {}, { why, files: [{ path: "a.txt", kind: "change", added: 1, removed: 1, hunks: [{ oldStart: 3, oldLines: 2, newStart: 3, newLines: 2, text: " same\n-old\n+new\n\\ No newline at end of file\n" }] }] });

describe("part/11 text of a decision", () => {
  it("names a command with its directory, its hosts and the sandbox", () => {
    assert.equal(questionText(command("/work/web"), session), "Run this command? npm test \u23ce ls (in web, timeoutMs 5, network: a.example)");
    assert.equal(questionText(command("/work", true), session), "Run outside the sandbox? npm test \u23ce ls (in the workspace, timeoutMs 5, network: a.example)");
    assert.equal(questionText(command("/work", true), { ...session, config: { approval: { sandbox: "fullAccess" } } } as Session), "Run this command? npm test \u23ce ls (in the workspace, no sandbox, timeoutMs 5, network: a.example)");
    assert.equal(questionText(command("/workshop"), session), "Run this command? npm test \u23ce ls (in /workshop, timeoutMs 5, network: a.example)");
  });

  it("names files and other tools", () => {
    assert.equal(questionText(files, session), "Change a.txt?");
    assert.equal(questionText(approval("mcp_post", { title: "x" }, { why }), session), 'Call the tool mcp_post? mcp_post {"title":"x"}');
  });

  it("part13 has the arguments of a foreign tool, also if the title that its provider has chosen has their text", () => {
    const title = { kind: "other" as const, verb: "Call", running: "Calling", done: "Called", subject: "docs: Post x", foreign: true };
    assert.equal(questionText(approval("mcp__docs__post", { title: "x" }, { why, title }), session), 'Call docs: Post x? mcp__docs__post {"title":"x"}');
    assert.equal(questionText(approval("read", { path: "x" }, { why, title: { ...title, verb: "Read", subject: "x", foreign: false } }), session), "Read x?");
  });

  it("part13 shows a second command, and what hides text", () => {
    const shown = (text: string) => questionText(approval("shell", { command: text }, { command: { command: text, dir: "/work" }, why }), session);
    assert.equal(shown("echo ok #\n  rm -rf ~ "), "Run this command? echo ok # \u23ce rm -rf ~ (in the workspace)");
    assert.equal(shown("rm \u202e~/x"), "Run this command? rm \\u202e~/x (in the workspace)");
    assert.equal(questionText({ ...files, kind: "question", prompt: "a\u202eb" }), "a\\u202eb");
    assert.match(wholeText(approval("shell", {}, { command: { command: "rm \u202e~/x", dir: "/work" }, why }), session), /\n\nrm \\u202e~\/x\n\n/);
  });

  it("has the whole call where it is the only text", () => {
    assert.equal(wholeText(files, session), "Change a.txt?\n\nChange a.txt +1 \u22121\n same\n-old\n+new\n\\ No newline at end of file\n\nThe rule `ask command npm` of the user decides.");
    assert.equal(wholeText(command("/work"), session), "Run this command?\n\nnpm test\nls\n\nin the workspace \u00b7 timeoutMs 5 \u00b7 network: a.example\n\nThe rule `ask command npm` of the user decides.");
  });

  it("is the prompt of any other decision", () => {
    assert.equal(questionText({ ...files, kind: "outcome" }), "May it?");
    assert.equal(questionText(approval("shell", { command: "ls" })), "May it?");
  });
});

describe("part/11 parts of an approval", () => {
  it("number the lines of a hunk", () => {
    const lines = linesOf({ oldStart: 3, newStart: 7, text: " same\n-old\n+new\n after\n" });
    assert.deepEqual(lines.map(({ number, mark, text }) => `${number} ${mark} ${text}`), ["7   same", "4 - old", "8 + new", "9   after"]);
  });

  it("apply to the file that they come from, and to no other", () => {
    const hunks = (files.detail?.files?.[0]?.hunks ?? []).map(hunkOf);
    assert.equal(applyHunks("1\n2\nsame\nold", hunks), "1\n2\nsame\nnew");
    assert.equal(applyHunks("1\n2\nother\nold", hunks), undefined);
  });

  it("offer widths, and always exactly this call", () => {
    const decision = approval("shell", {}, { why, widths: [{ text: "commands that begin with npm test", rule: { action: "allow" } }] });
    assert.deepEqual(widthsOf(decision), [{ text: "commands that begin with npm test", index: 0 }, { text: "exactly this call" }]);
  });

  it("count down by durations of the daemon, whatever the clocks say", () => {
    const opened = { ...files, openedAtMs: 5_000, deadlineAtMs: 605_000 };
    const times = timesOf([opened, { ...opened, decisionId: "dec_2", remainingMs: 61_400 }, { ...files, decisionId: "dec_3" }], {}, 1_000_000);
    assert.deepEqual(times, { dec_1: 1_600_000, dec_2: 1_061_400 });
    assert.deepEqual(timesOf([opened], times, 2_000_000), { dec_1: 1_600_000 });
    assert.equal(timeLeft(opened, 581_000), "Denies automatically in 9:41");
    assert.equal(timeLeft({ ...opened, default: "allowOnce" }, -5), "Allows automatically in 0:00");
  });
});
