import type { Event, Item, Session, SessionAttachResult, Task } from "../../src/protocol";

// The events of a turn: text, a call with output, and a reply. The item of the input comes after the start of the model reply.

export const session: Session = {
  sessionId: "ses_1",
  cwd: "/work",
  state: "idle",
  head: { revision: 1, leaf: "nod_0", generation: 0, frame: "nod_0" },
  config: { driver: "standard", model: { provider: "openai", id: "fake" }, budget: { iterations: 10 } },
  relation: { kind: "root" },
  seq: 0,
  turnIndex: 0,
  usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 },
  createdAtMs: 1,
  updatedAtMs: 1,
};

export const attached: SessionAttachResult = { session, decisions: [], queue: [], tasks: [] as Task[], seq: 0 };

const turnId = "trn_1";

const user: Item = { itemId: "nod_u:0", kind: "userMessage", status: "completed", turnId, atMs: 1, text: "go", origin: { kind: "turnInput", inputId: "inp_1" } };
const streamedItem: Item = { itemId: "nod_a:0", kind: "agentMessage", status: "completed", turnId, atMs: 2, text: "I l\u00f6\u00f6k." };
const call: Item = { itemId: "nod_a:1", kind: "toolCall", status: "inProgress", turnId, atMs: 2, callId: "call_1", tool: "shell", args: { command: "ls" } };
const answer: Item = { itemId: "nod_b:0", kind: "agentMessage", status: "completed", turnId, atMs: 3, text: "done" };

const unfinished = (item: Item): Item => ({ ...item, status: "inProgress", text: undefined });

type RawEvent = Omit<Event, "sessionId" | "turnId" | "atMs">;

const rawEvents: RawEvent[] = [
  { type: "turn/accepted", seq: 1, input: [{ type: "text", text: "go" }], inputIds: ["inp_1"] },
  { type: "turn/started" },
  { type: "model/requested", iteration: 1 },
  { type: "item/started", item: unfinished(streamedItem) },
  { type: "item/delta", itemId: streamedItem.itemId, offset: 0, text: "I l\u00f6" },
  { type: "item/delta", itemId: streamedItem.itemId, offset: 5, text: "\u00f6k." },
  { type: "item/completed", seq: 2, itemId: user.itemId, item: user },
  { type: "item/completed", seq: 3, itemId: streamedItem.itemId, item: streamedItem },
  { type: "item/started", seq: 4, itemId: call.itemId, item: call },
  { type: "tool/progress", toolCall: { callId: "call_1", name: "", args: null }, text: "a\n" },
  { type: "tool/progress", toolCall: { callId: "call_1", name: "", args: null }, text: "b\n" },
  { type: "item/completed", seq: 5, itemId: call.itemId, item: { ...call, status: "completed", output: { status: "success", text: "a\nb\n" } } },
  { type: "model/requested", iteration: 2 },
  { type: "item/started", item: unfinished(answer) },
  { type: "item/delta", itemId: answer.itemId, offset: 0, text: "do" },
  { type: "item/delta", itemId: answer.itemId, offset: 2, text: "ne" },
  { type: "item/completed", seq: 6, itemId: answer.itemId, item: answer },
  { type: "turn/completed", seq: 7, outcome: { kind: "assistantMessage", text: "done" } },
];

export const turn: Event[] = rawEvents.map((event) => ({ ...event, sessionId: "ses_1", turnId, atMs: 1 }));
