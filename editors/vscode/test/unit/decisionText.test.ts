import { strict as assert } from "node:assert";
import { questionText } from "../../src/decisionText";
import type { Decision } from "../../src/protocol";

const approval = (name: string, args: object, prompt: string): Decision => ({
  decisionId: "dec_1", sessionId: "ses_1", kind: "approval", call: { callId: "c", name, args }, prompt, choices: ["allowOnce", "reject"], default: "reject", openedAtMs: 1, deadlineAtMs: 0,
});
const asked = (name: string, args: object, more = "") => questionText(approval(name, args, `Allow the tool ${name} to run with ${JSON.stringify(args)}?${more}`));

describe("part/8 the question of a decision", () => {
  it("shows a shell command", () => {
    assert.equal(asked("shell", { command: "npm test" }), "Run `npm test`?");
    assert.equal(asked("shell", { command: "npm test" }, " The plugin guard asks: sure?"), "Run `npm test`? The plugin guard asks: sure?");
  });

  it("shows all arguments of any other call", () => {
    assert.equal(asked("write", { path: "a.txt" }), 'Allow this tool call?\nwrite {"path":"a.txt"}');
    assert.equal(asked("shell", { command: "a", timeoutMs: 5 }), 'Allow this tool call?\nshell {"command":"a","timeoutMs":5}');
  });

  it("never shows a command that contains backquotes or control characters as plain text", () => {
    for (const command of ["echo `id`", "a\nb", "a\u001b[2J", "a\u202eb"]) {
      assert.match(asked("shell", { command }), /^Allow this tool call\?\nshell \{/);
    }
  });

  it("is the prompt itself if the prompt has another form", () => {
    const prompt = "Did the command run?";
    assert.equal(questionText({ ...approval("shell", { command: "ls" }, prompt) }), prompt);
    assert.equal(questionText({ ...approval("shell", { command: "ls" }, prompt), kind: "outcome" }), prompt);
  });

  it("shortens long arguments as the daemon does", () => {
    const args = { path: "\u00e9".repeat(400) };
    const quoted = `${JSON.stringify(args).slice(0, 9)}${"\u00e9".repeat(145)}...`;
    assert.equal(questionText(approval("read", args, `Allow the tool read to run with ${quoted}?`)), `Allow this tool call?\nread ${quoted}`);
  });
});
