import { strict as assert } from "node:assert";
import { contextParts, fillOf, fillText, tokensText } from "../../src/model/context";
import { reduce, replay, snapshot } from "../../src/model/session";
import type { DebugPromptResult, Event } from "../../src/protocol";
import { attached } from "./turn";

const usage = { input: 1000, cacheRead: 60_000, cacheWrite: 0, output: 7000, reasoning: 0 };
const model = (contextWindow?: number) => ({ provider: "p", id: "m", contextWindow });

describe("issue/18 the meter of the context window", () => {
  it("says how full the window is, as far as that is known", () => {
    const texts = [fillOf(usage, model(200_000)), fillOf(usage, model()), fillOf(undefined, model(200_000)), fillOf(undefined, model())].map(fillText);
    assert.deepEqual(texts, [
      { short: "Context 34%", long: "Context: 68k of 200k tokens, 34% full" },
      { short: "Context 68k", long: "Context: 68k tokens; the window of this model is not known" },
      { short: "Context", long: "Context window of 200k tokens, known after the next model call" },
      { short: "Context", long: "Context window, known after the next model call" },
    ]);
    assert.equal(fillOf(usage, model(50_000)).percent, 100);
    assert.deepEqual([950, 1049, 6200, 200_000, 1_000_000].map(tokensText), ["950", "1k", "6.2k", "200k", "1M"]);
  });

  it("is there when a session is opened, follows the calls, and starts over after a compaction", () => {
    const opened = snapshot({ ...attached, context: usage });
    assert.deepEqual(opened.context, usage);
    const event = (type: string, more: object): Event => ({ type, atMs: 1, ...more }) as Event;
    const called = reduce(opened, [event("model/recorded", { seq: 1, call: { usage: { ...usage, input: 5 } } })]);
    assert.equal(called.context?.input, 5);
    assert.equal(reduce(called, [event("model/recorded", { seq: 2, call: {} })]).context?.input, 5);
    assert.equal(replay(called, { ...attached, seq: 1 }).context?.input, 5);
    assert.equal(reduce(called, [event("session/compacted", { seq: 2 })]).context, undefined);
  });

  it("estimates what fills the next request", () => {
    const prompt = {
      system: "x".repeat(400),
      tools: [{ name: "read", description: "d".repeat(394), input: {} }],
      messages: [
        { role: "user", parts: [{ kind: "text", text: "\u00e9".repeat(100) }, { kind: "attachment", attachment: { type: "image/png", estimatedTokens: 1500 } }] },
        { role: "tool", parts: [{ kind: "toolResult", result: { callId: "c", name: "read", order: 0, output: { status: "success", text: "y".repeat(200), attachments: [{ type: "image/png", estimatedTokens: 500 }] } } }] },
      ],
    } as unknown as DebugPromptResult;
    assert.deepEqual(contextParts(prompt), [
      { title: "System prompt", detail: "", tokens: 100 },
      { title: "Tools", detail: "1 tool", tokens: 100 },
      { title: "History", detail: "2 messages", tokens: 100 },
      { title: "Attachments", detail: "2 files", tokens: 2000 },
    ]);
    const unknown = { ...prompt, messages: [{ role: "user", parts: [{ kind: "attachment", attachment: { type: "image/png" } }] }] } as unknown as DebugPromptResult;
    assert.deepEqual(contextParts(unknown).at(-1), { title: "Attachments", detail: "1 file" });
  });
});
