import { strict as assert } from "node:assert";
import type { Event } from "../../src/protocol";
import { ReplyStream } from "../../src/lm/prompt";

const item = (text?: string) => ({ itemId: "nod_1:0", kind: "agentMessage" as const, status: "completed" as const, atMs: 1, text });
const delta = (offset: number, text: string) => ({ type: "item/delta", itemId: "nod_1:0", offset, text }) as Event;
const started = { type: "item/started", item: item() } as Event;
const completed = { type: "item/completed", item: item("Gr\u00fc\u00df dich!") } as Event;

describe("issue/6-1 a streamed reply", () => {
  for (const [name, events] of Object.entries({
    "in order": [started, delta(0, "Gr\u00fc"), delta(4, "\u00df dich!"), completed],
    "with repeated text": [started, delta(0, "Gr\u00fc"), delta(2, "\u00fc\u00df"), completed],
    "with missing text": [started, delta(0, "Gr"), delta(6, " dich!"), completed],
    "with only its end": [completed],
    "that starts again": [started, delta(0, "Gr\u00fc\u00df"), started, delta(0, "Gr\u00fc\u00df dich"), completed],
  })) {
    it(name, () => {
      let said = "";
      const spoken = new ReplyStream((text) => (said += text));
      events.forEach((event) => spoken.handle(event));
      assert.deepEqual([said, spoken.hasText], ["Gr\u00fc\u00df dich!\n\n", true]);
    });
  }

  it("contains nothing but agent messages", () => {
    const spoken = new ReplyStream((text) => assert.fail(text));
    spoken.handle({ type: "item/completed", item: { ...item("x"), kind: "reasoning" } } as Event);
    spoken.handle(delta(0, "x"));
    assert.equal(spoken.hasText, false);
  });
});
