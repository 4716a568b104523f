import { strict as assert } from "node:assert";
import { page, reduce, replay, snapshot, type SessionView } from "../../src/model/session";
import type { Decision, Event, Item } from "../../src/protocol";
import { attached, session, turn } from "./turn";

const texts = (view: SessionView) => view.items.map((item) => item.text ?? item.output?.text ?? item.tool);
const whole = ["go", "I l\u00f6\u00f6k.", "a\nb\n", "done"];
const begin = () => snapshot(attached);
const durable = (events: Event[]) => events.filter((event) => event.seq !== undefined);

describe("issue/6-1 the view of a session", () => {
  it("has each item of a turn once, in order", () => {
    const view = reduce(begin(), turn);
    assert.deepEqual(texts(view), whole);
    assert.deepEqual([view.seq, view.turnId, view.live, view.progress], [7, undefined, {}, {}]);
  });

  it("shows an input before the model answers", () => {
    assert.deepEqual(texts(reduce(begin(), turn.slice(0, 2))), ["go"]);
    assert.deepEqual(texts(reduce(begin(), turn.slice(0, 6))), ["go", "I l\u00f6\u00f6k."]);
  });

  it("shows the output of a call until the call ends", () => {
    assert.deepEqual(reduce(begin(), turn.slice(0, 11)).progress, { call_1: "a\nb\n" });
  });

  it("is the same however events are batched", () => {
    for (let cut = 0; cut <= turn.length; cut++) {
      const view = reduce(reduce(begin(), turn.slice(0, cut)), turn.slice(cut));
      assert.deepEqual(texts(view), whole, `gathered at ${cut}`);
    }
  });

  it("does not change the earlier view", () => {
    const view = reduce(begin(), turn.slice(0, 6));
    const before = JSON.stringify(view);
    reduce(view, turn.slice(6));
    assert.equal(JSON.stringify(view), before);
  });

  it("applies each durable event once", () => {
    const view = reduce(begin(), turn);
    assert.deepEqual(reduce(view, durable(turn)), view);
  });

  it("adds repeated or overlapping text once", () => {
    const half = reduce(begin(), turn.slice(0, 5));
    const again: Event = { sessionId: "ses_1", atMs: 1, type: "item/delta", itemId: "nod_a:0", offset: 3, text: "\u00f6\u00f6k." };
    assert.deepEqual(texts(reduce(half, [again, again])), ["go", "I l\u00f6\u00f6k."]);
  });

  it("is stale if text or an event is missing", () => {
    assert.equal(reduce(begin(), [...turn.slice(0, 4), ...turn.slice(5)]).stale, true, "missing text");
    assert.equal(reduce(begin(), durable(turn).slice(1)).stale, true, "missing event");
    assert.equal(reduce(begin(), turn).stale, undefined);
  });

  it("loses and repeats nothing if the daemon is killed after any event", () => {
    for (let cut = 0; cut <= turn.length; cut++) {
      const seen = reduce(begin(), turn.slice(0, cut));
      const stored = durable(turn.slice(0, cut)).length;
      const before = replay(seen, { ...attached, seq: stored, ...(stored > 0 && stored < 7 && { turnId: "trn_1" }) });
      assert.ok(texts(before).every((text, at) => text === whole[at] || text === "shell"), `after a kill at ${cut}: ${texts(before).join("|")}`);
      const asked = turn.findLastIndex((event, at) => at <= cut && event.type === "model/requested");
      const rest = turn.slice(Math.max(asked, 0)); // the model call is repeated and streams its text again
      assert.deepEqual(texts(reduce(before, rest)), whole, `killed at ${cut}`);
    }
  });

  it("catches up after a lost connection", () => {
    for (let cut = 0; cut <= turn.length; cut++) {
      const seen = reduce(begin(), turn.slice(0, cut));
      const openItems: Item[] = [{ itemId: "nod_b:0", kind: "agentMessage", status: "inProgress", turnId: "trn_1", atMs: 3, text: "do" }];
      const late = cut < 17; // after that event the item is complete
      const r = { ...attached, seq: late ? 5 : 7, ...(late && { openItems, turnId: "trn_1" }) };
      const missed = durable(turn).filter((event) => (event.seq ?? 0) <= r.seq && (event.seq ?? 0) > seen.seq);
      const caught = reduce(replay(seen, r), missed);
      assert.deepEqual(texts(caught), late ? ["go", "I l\u00f6\u00f6k.", "a\nb\n", "do"] : whole, `lost at ${cut}`);
      assert.deepEqual(texts(reduce(caught, turn.slice(15))), whole, `lost at ${cut}, then the rest`);
    }
  });

  it("starts from a snapshot and pages back", () => {
    const item = (n: number): Item => ({ itemId: `nod_${n}:0`, kind: "agentMessage", status: "completed", atMs: n, text: String(n) });
    const view = snapshot({ ...attached, items: [item(3), item(4)], nextCursor: "older", seq: 9 });
    const more = page(view, { session, data: [item(1), item(2), item(3)] });
    assert.deepEqual(texts(more), ["1", "2", "3", "4"]);
    assert.deepEqual([view.older, more.older], ["older", undefined]);
  });

  it("removes retracted items, and unstored items of a failed turn", () => {
    const retracted: Event = { sessionId: "ses_1", turnId: "trn_1", atMs: 1, type: "item/retracted", itemId: "nod_a:0" };
    assert.deepEqual(texts(reduce(begin(), [...turn.slice(0, 6), retracted])), ["go"]);
    const failed: Event = { sessionId: "ses_1", turnId: "trn_1", atMs: 1, seq: 2, type: "turn/completed", outcome: { kind: "providerError" }, issues: [{ kind: "provider", code: "x", message: "no" }] };
    const view = reduce(begin(), [...turn.slice(0, 6), failed]);
    assert.deepEqual([texts(view), view.ends["trn_1"]?.message, view.turnId], [[], "no", undefined]);
  });

  it("is stale after a rewind", () => {
    assert.equal(reduce(reduce(begin(), turn), [{ sessionId: "ses_1", atMs: 1, seq: 8, type: "session/rewound" }]).stale, true);
  });

  it("shows a queued input in the conversation when its turn starts", () => {
    const accepted: Event = { sessionId: "ses_1", turnId: "trn_2", atMs: 1, seq: 2, type: "turn/accepted", inputIds: ["inp_2"], input: [{ type: "text", text: "more" }] };
    const waiting = reduce(begin(), [turn[0]!, accepted]);
    assert.deepEqual(texts(waiting), ["go"]);
    const started = reduce(waiting, [{ sessionId: "ses_1", turnId: "trn_2", atMs: 1, type: "turn/started" }]);
    assert.deepEqual(texts(started), ["go", "more"]);
  });
});

describe("reliability/I9 the view of a session", () => {
  const input = { inputId: "inp_1", turnId: "trn_1", state: "queued" as const, atMs: 1, input: [{ type: "text" as const, text: "go" }] };
  const eventOf = (event: Omit<Event, "sessionId" | "atMs">): Event => ({ ...event, sessionId: "ses_1", atMs: 1 });

  it("shows the inputs of the running turn, even those before the attach", () => {
    const openItems: Item[] = [{ itemId: "nod_a:0", kind: "agentMessage", status: "inProgress", turnId: "trn_1", atMs: 2, text: "I l" }];
    const r = { ...attached, turnId: "trn_1", seq: 1, entered: [input], openItems };
    assert.deepEqual(texts(snapshot(r)), ["go", "I l"]);
    assert.deepEqual(texts(reduce(snapshot(r), turn.slice(6))), whole, "and after its item");
    assert.deepEqual(texts(replay(reduce(begin(), turn.slice(0, 5)), r)), ["go", "I l"], "after a lost connection");
  });

  it("shows a steered input, before and after its item arrives", () => {
    const steered = { ...input, inputId: "inp_2", state: "pendingActive" as const, input: [{ type: "text" as const, text: "mind" }] };
    const item: Item = { itemId: "nod_s:0", kind: "userMessage", status: "completed", turnId: "trn_1", atMs: 3, text: "mind", origin: { kind: "turnInput", inputId: "inp_2" } };
    const taken = reduce(begin(), [
      turn[0]!,
      eventOf({ seq: 2, type: "queue/changed", queue: [steered] }),
      eventOf({ seq: 3, turnId: "trn_1", type: "input/accepted", inputIds: ["inp_2"] }),
      eventOf({ seq: 4, type: "queue/changed", queue: [] }),
    ]);
    assert.deepEqual(texts(taken), ["go", "mind"]);
    assert.deepEqual(texts(reduce(taken, [eventOf({ seq: 5, turnId: "trn_1", type: "item/completed", itemId: item.itemId, item })])), ["go", "mind"]);
  });

  it("shows a wake once", () => {
    const item: Item = { itemId: "nod_w:0", kind: "notice", status: "completed", turnId: "trn_1", atMs: 1, text: "go", origin: { kind: "process", inputId: "inp_1" } };
    assert.deepEqual(texts(reduce(begin(), [turn[0]!, eventOf({ seq: 2, turnId: "trn_1", type: "item/completed", itemId: item.itemId, item })])), ["go"]);
  });

  it("places an item of no turn before the running turn, as in the history", () => {
    const note: Item = { itemId: "nod_n:0", kind: "userMessage", status: "completed", atMs: 1, text: "note" };
    const added = (seq: number) => eventOf({ seq, type: "item/completed", itemId: note.itemId, item: note });
    assert.deepEqual(texts(reduce(begin(), [...turn.slice(0, 8), added(4)])), ["note", "go", "I l\u00f6\u00f6k."]);
    assert.deepEqual(texts(reduce(begin(), [...turn, added(8)])), [...whole, "note"]);
  });

  it("marks a compaction", () => {
    const view = reduce(begin(), [eventOf({ seq: 1, type: "session/compacted", itemId: "nod_f:0" })]);
    assert.deepEqual(view.items, [{ itemId: "nod_f:0", kind: "compaction", status: "completed", atMs: 1 }]);
  });
});

describe("issue/6-1 decisions in the view of a session", () => {
  const decision: Decision = { decisionId: "dec_1", sessionId: "ses_1", kind: "approval", prompt: "May it?", choices: ["allowOnce", "reject"], default: "reject", openedAtMs: 1, deadlineAtMs: 0 };
  const opened: Event = { sessionId: "ses_1", atMs: 1, seq: 1, type: "decision/opened", decision };
  const resolved: Event = { sessionId: "ses_1", atMs: 1, seq: 2, type: "decision/resolved", decision };

  it("disappear when any client answers them", () => {
    const asked = reduce(begin(), [opened]);
    assert.deepEqual(asked.decisions.map((d) => d.decisionId), ["dec_1"]);
    assert.deepEqual(reduce(asked, [resolved]).decisions, []);
  });

  it("are those of the attach answer after a lost connection", () => {
    const asked = reduce(begin(), [opened]);
    assert.deepEqual(reduce(replay(asked, { ...attached, seq: 2 }), [resolved]).decisions, []);
    assert.deepEqual(replay(asked, { ...attached, seq: 1, decisions: [decision] }).decisions, [decision]);
  });
});
