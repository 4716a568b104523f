import { strict as assert } from "node:assert";
import { decidedText } from "../../src/model/decided";
import { traceText } from "../../src/model/trace";
import type { Event, TurnReport } from "../../src/protocol";

const why = { by: "sandbox" as const, text: "It runs in the sandbox." };

describe("part11/3 how a call was decided", () => {
  it("names what allowed or denied it", () => {
    assert.equal(decidedText({ mode: "allow", why }), "Allowed: It runs in the sandbox.");
    assert.equal(decidedText({ mode: "deny", why }), "Denied: It runs in the sandbox.");
  });

  it("names the answer of a person, and why lashd asked", () => {
    assert.equal(decidedText({ mode: "allow", why, choice: "allowSession", by: "cli_a" }), "Allowed for the session. Reason for the question: It runs in the sandbox.");
    assert.equal(decidedText({ mode: "deny", why, choice: "reject", by: "cli_a" }), "Denied. Reason for the question: It runs in the sandbox.");
    assert.equal(decidedText({ mode: "deny", why, choice: "reject", by: "deadline" }), "Denied, because no answer came in time. Reason for the question: It runs in the sandbox.");
  });

  it("is in the trace of a turn", () => {
    const item = { itemId: "i", kind: "toolCall", callId: "c", tool: "shell", atMs: 1, status: "inProgress", args: {}, decision: { mode: "allow", why } } as const;
    const event: Event = { sessionId: "s", turnId: "trn_1", type: "item/started", seq: 1, atMs: 1, item };
    const turn: TurnReport = { turnId: "trn_1", sessionId: "s", state: "completed", usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, reasoning: 0 }, acceptedAtMs: 1 };
    assert.match(traceText(turn, [event]), /shell started\n\s+\{\}\n\s+Allowed: It runs in the sandbox\./u);
  });
});
