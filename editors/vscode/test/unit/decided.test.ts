import { strict as assert } from "node:assert";
import { decidedText, reasonText } from "../../src/model/decided";
import { traceText } from "../../src/model/trace";
import type { ApprovalReason, Event, TurnReport } from "../../src/protocol";
import { session } from "./turn";

const why = { by: "sandbox" as const, text: "It runs in the sandbox." };

describe("part11/3 how a call was decided", () => {
  it("names what allowed or denied it", () => {
    assert.equal(decidedText({ mode: "allow", why }), "Allowed: It runs in the sandbox.");
    assert.equal(decidedText({ mode: "deny", why }), "Denied: It runs in the sandbox.");
    assert.equal(decidedText({ mode: "deny", why: { by: "preview", text: "It cannot fit." } }), "Not run: It cannot fit.");
  });

  it("names the answer of a person, and why lashd asked", () => {
    assert.equal(decidedText({ mode: "allow", why, choice: "allowSession", by: "cli_a" }), "Allowed for the session. Reason for the question: It runs in the sandbox.");
    assert.equal(decidedText({ mode: "deny", why, choice: "reject", by: "cli_a" }), "Denied.");
    assert.equal(decidedText({ mode: "deny", why, choice: "reject", by: "cli_a", reason: "Not today." }), "Denied: Not today.");
    assert.equal(decidedText({ mode: "deny", why, choice: "reject", by: "deadline" }), "Denied, because no answer came in time.");
  });

  it("part15/34 says that an answer allowed only some of the changes", () => {
    assert.equal(decidedText({ mode: "allow", why, choice: "allowOnce", by: "cli_a", hunks: [1] }), "Allowed only 1 change. The others were denied. Reason for the question: It runs in the sandbox.");
    assert.match(decidedText({ mode: "allow", why, choice: "allowOnce", by: "cli_a", hunks: [1], reason: "Keep it." }), /^Allowed only 1 change\. The others were denied: Keep it\. Reason for/);
  });

  it("part15/32 names the mode of a session that asks, by the name that the user chose", () => {
    const named = (approval: object, reason: ApprovalReason) => reasonText(reason, { ...session.config, approval });
    assert.equal(named({ mode: "ask" }, { by: "mode", text: "The approval mode `ask` of the session decides." }), "The mode \u201cAsk before every call\u201d of this session asks.");
    const rule = { tool: "write", action: "ask" } as const;
    const rules = ["edit", "patch", "write"].map((tool) => ({ tool, action: "ask" }));
    assert.equal(named({ sandbox: "workspace", rules }, { by: "rule", level: "session", rule, text: "The rule `ask tool write` of the session decides." }), "The mode \u201cAsk before edits\u201d of this session asks.");
    assert.equal(named({ rules }, { by: "rule", level: "user", rule, text: "The rule `ask tool write` of the user decides." }), "The rule \u201cask tool write\u201d of the user decides.");
    assert.equal(named({}, { by: "mode", text: "No rule allows the call, and the tool can change something." }), "No rule allows the call, and the tool can change something.");
  });

  it("part13/31 says that the session edits without asking, and shows no backquotes", () => {
    const rule = (tool: string, level: "session" | "user") => ({ by: "rule" as const, level, rule: { tool, action: "allow" as const }, text: `The rule \`allow tool ${tool}\` of the ${level} decides.` });
    assert.equal(decidedText({ mode: "allow", why: rule("patch", "session") }), "Allowed: This session edits without asking.");
    assert.equal(decidedText({ mode: "allow", why: rule("patch", "user") }), "Allowed: The rule \u201callow tool patch\u201d of the user decides.");
    assert.equal(decidedText({ mode: "allow", why: rule("fetch", "session") }), "Allowed: The rule \u201callow tool fetch\u201d of the session decides.");
  });

  it("is in the trace of a turn", () => {
    const item = { itemId: "i", kind: "toolCall", callId: "c", tool: "shell", atMs: 1, status: "inProgress", args: {}, decision: { mode: "allow", why } } as const;
    const event: Event = { sessionId: "s", turnId: "trn_1", type: "item/started", seq: 1, atMs: 1, item };
    const turn: TurnReport = { turnId: "trn_1", sessionId: "s", state: "completed", usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, reasoning: 0 }, acceptedAtMs: 1 };
    assert.match(traceText(turn, [event]), /shell started\n\s+\{\}\n\s+Allowed: It runs in the sandbox\./u);
  });
});
