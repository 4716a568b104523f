import { strict as assert } from "node:assert";
import { promptsOf, traceLines, traceText } from "../../src/model/trace";
import type { Event, TurnReport } from "../../src/protocol";

const usage = { input: 1500, output: 100, cacheRead: 0, cacheWrite: 0, reasoning: 0, cost: 4_000_000 };
const turn: TurnReport = { turnId: "trn_1", sessionId: "ses_1", state: "completed", usage, acceptedAtMs: 1000, durationMs: 2500 };
const call = { iteration: 1, provider: "here", model: "m", stop: "toolUse", usage, durationMs: 1200, attempts: [
  { outcome: "failed", status: 429, waitMs: 500, error: { kind: "provider", code: "rate", message: "slow down" } }, { outcome: "completed" },
] } as const;
const tool = { itemId: "i", kind: "toolCall", callId: "c", tool: "shell", turnId: "trn_1" } as const;
const rawEvents: Omit<Event, "sessionId" | "turnId">[] = [
  { type: "turn/accepted", seq: 1, atMs: 1000, input: [{ type: "text", text: "go\non" }] },
  { type: "model/recorded", seq: 2, atMs: 2200, call: { ...call, attempts: [...call.attempts] } },
  { type: "item/started", seq: 3, atMs: 2201, item: { ...tool, atMs: 2201, status: "inProgress", args: { command: "ls" } } },
  { type: "decision/opened", seq: 4, atMs: 2202, decision: { decisionId: "d", sessionId: "ses_1", kind: "approval", prompt: "May it?", choices: ["reject"], default: "reject", openedAtMs: 1, deadlineAtMs: 0 } },
  { type: "item/completed", seq: 5, atMs: 3000, item: { ...tool, atMs: 3000, status: "failed", durationMs: 20, output: { status: "error", text: "out", failure: { code: "x", message: "no" } } as never } },
  { type: "plugin/status", seq: 6, atMs: 3001, plugin: "guard", text: "looks" },
  { type: "turn/completed", seq: 7, atMs: 3500, outcome: { kind: "assistantMessage" } },
];
const events: Event[] = rawEvents.map((event) => ({ ...event, sessionId: "ses_1", turnId: "trn_1" }));

describe("issue/6-1 the trace of a turn", () => {
  it("is a readable outline", () => {
    assert.equal(traceText(turn, events), `Turn trn_1: completed, 2.50 s
Session ses_1, accepted 1970-01-01T00:00:01.000Z
1500 tokens in, 100 out, $0.0040

    +0.000  accepted
            go
            on
    +1.200  model call 1: here/m, 1.20 s, 1500 tokens in, 100 out, $0.0040, toolUse
            attempt failed, 429, slow down, retried after 0.50 s
    +1.201  shell started
            {
              "command": "ls"
            }
    +1.202  question
            May it?
    +2.000  shell: failed, 0.02 s
            no
            out
    +2.001  plugin/status
            {
              "plugin": "guard",
              "text": "looks"
            }
    +2.500  turn ended: assistantMessage
`);
  });

  it("is saved as one event per line", () => {
    assert.deepEqual(traceLines(events).trimEnd().split("\n").map((line) => JSON.parse(line) as Event), events);
  });

  it("issue/19-8 has a cell with its calls, their durations and its result", () => {
    const cell = { itemId: "x", kind: "codeCell", language: "starlark", text: "x = 1\noops", turnId: "trn_1" } as const;
    const calls = [{ callId: "a", index: 1, tool: "read", args: { path: "go.mod" }, status: "completed", durationMs: 3, summary: "module" } as const];
    const result = { calls, moreCalls: 2, durationMs: 1500, printed: "1\n", error: "undefined: oops", position: { line: 2 }, changed: ["x"] };
    const about = { sessionId: "ses_1", turnId: "trn_1" };
    assert.equal(traceText(turn, [
      { ...about, type: "item/started", seq: 1, atMs: 1000, item: { ...cell, atMs: 1000, status: "inProgress" } },
      { ...about, type: "item/completed", seq: 2, atMs: 2500, item: { ...cell, atMs: 2500, status: "failed", cell: result } },
    ]).split("\n\n")[1], `    +0.000  starlark started
            x = 1
            oops
    +1.500  starlark failed, 1.5 s
            completed: read go.mod \u00b7 3 ms \u00b7 module
            2 more calls
            1
            Error in line 2: undefined: oops
            changed: x
`);
  });

  it("part/13 is found by the first input of its turn", () => {
    const input = (turnId: string, text: string) => ({ itemId: text, kind: "userMessage" as const, status: "completed" as const, atMs: 1, turnId, text });
    assert.deepEqual(promptsOf([input("a", "fix it\nnow"), input("a", "steer"), { ...input("b", "x"), kind: "agentMessage" }, input("c", " more ")]), { a: "fix it", c: "more" });
  });
});
