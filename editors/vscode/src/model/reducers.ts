import type { Event, Item, ItemID, QueuedInput } from "../protocol";
import { withCall } from "./cells";
import { append, byteLength } from "./streamedText";
import type { SessionView } from "./session";

/** maxProgress is the length of the output of a running call that the view keeps, in characters. */
const maxProgress = 32_768;

type Reducer = (view: SessionView, event: Event) => void;

/** reducers change a view for each type of event. Other events do not change the view. */
export const reducers: Partial<Record<Event["type"], Reducer>> = {
  "turn/accepted": (view, event) => {
    const inputId = event.inputIds?.[0];
    if (event.turnId !== undefined && inputId !== undefined) {
      view.accepted[event.turnId] = { inputId, input: event.input ?? [] };
    }
    if (view.turnId === undefined) {
      startTurn(view, event);
    }
  },
  "turn/started": startTurn,
  "input/accepted": (view, { inputIds, turnId = "", atMs }) => {
    for (const input of view.queue.filter((waiting) => inputIds?.includes(waiting.inputId))) {
      showInput(view, { ...input, turnId, atMs });
    }
  },
  "turn/completed": (view, event) => {
    endTurn(view, event);
  },
  "item/started": (view, event) => {
    if (event.item) {
      openItem(view, event.item, event.seq !== undefined);
    }
  },
  "item/delta": appendDelta,
  "item/completed": (view, event) => {
    if (event.item) {
      completeItem(view, event.item);
    }
  },
  "item/retracted": (view, event) => {
    removeItem(view, event.itemId);
  },
  "tool/progress": (view, event) => {
    const id = event.toolCall?.callId;
    if (id !== undefined) {
      view.progress[id] = ((view.progress[id] ?? "") + (event.text ?? "")).slice(-maxProgress);
    }
  },
  "cell/call": (view, { itemId, cellCall }) => {
    const at = indexOf(view, itemId ?? "");
    const item = view.items[at];
    if (item && cellCall && item.status === "inProgress") {
      view.items[at] = { ...item, cell: withCall(item.cell ?? {}, cellCall) };
    }
  },
  "decision/opened": (view, event) => {
    if (event.decision) {
      removeDecision(view, event);
      view.decisions.push(event.decision);
    }
  },
  "decision/resolved": removeDecision,
  "queue/changed": (view, event) => {
    view.queue = event.queue ?? [];
  },
  "retry/status": (view, event) => {
    view.retry = event.retry;
  },
  "model/requested": (view) => {
    view.retry = undefined;
  },
  "session/configured": (view, event) => {
    const { config, title, name } = event;
    view.session = { ...view.session, ...(config && { config }), ...(title !== undefined && { title }), ...(name && { archived: name === "archived" }) };
  },
  "model/recorded": (view, { call }) => {
    view.context = call?.usage ?? view.context;
  },
  "session/rewound": (view) => {
    view.stale = true;
  },
  "session/compacted": (view, { itemId, atMs }) => {
    view.context = undefined;
    if (itemId !== undefined) {
      storeItem(view, { itemId, kind: "compaction", status: "completed", atMs });
    }
  },
  "file/point": (view, { point }) => {
    if (point?.turnId !== undefined) {
      view.points[point.turnId] = point;
    }
  },
  "usage/updated": (view, event) => {
    view.total = event.total;
  },
  "task/started": changeTask,
  "task/changed": changeTask,
  "task/completed": changeTask,
};

/** startTurn makes a turn the running turn and shows its input. */
function startTurn(view: SessionView, event: Event) {
  const { turnId = "", atMs } = event;
  view.turnId = turnId;
  const accepted = view.accepted[turnId];
  if (accepted) {
    showInput(view, { ...accepted, turnId, atMs });
  }
}

/** showInput shows the parts of an input of the running turn until their items arrive, after the first model reply. */
export function showInput(view: SessionView, { inputId, input, turnId, atMs }: Pick<QueuedInput, "inputId" | "input" | "turnId" | "atMs">) {
  if (view.items.some((item) => item.origin?.inputId === inputId)) {
    return;
  }
  for (const [at, { text, attachment }] of input.entries()) {
    const itemId = `input:${inputId}:${at}`;
    const origin: Item["origin"] = { kind: "turnInput", inputId };
    view.items.push({ itemId, kind: "userMessage", status: "inProgress", turnId, atMs, origin, ...(text !== undefined && { text }), ...(attachment && { attachment }) });
    view.live[itemId] = 0;
  }
}

function endTurn(view: SessionView, event: Event) {
  const { turnId, outcome, usage, issues } = event;
  if (turnId === undefined) {
    return;
  }
  if (view.turnId === turnId) {
    view.turnId = undefined;
  }
  view.retry = undefined;
  delete view.accepted[turnId];
  view.items = view.items.filter((item) => item.turnId !== turnId || !(item.itemId in view.live));
  view.live = Object.fromEntries(view.items.filter((item) => item.itemId in view.live).map((item) => [item.itemId, view.live[item.itemId] ?? 0]));
  view.ends[turnId] = { turnId, outcome, usage, message: issues?.at(-1)?.message, code: issues?.at(-1)?.code };
}

function indexOf(view: SessionView, id: ItemID): number {
  return view.items.findLastIndex((item) => item.itemId === id);
}

/** openItem shows an unfinished item. */
export function openItem(view: SessionView, item: Item, durable: boolean) {
  if (durable) {
    storeItem(view, item);
    return;
  }
  const at = indexOf(view, item.itemId);
  if (at < 0) {
    view.items.push(item);
  } else if (item.itemId in view.live) {
    view.items[at] = item;
  } else {
    return;
  }
  view.live[item.itemId] = byteLength(item.text ?? "");
}

function completeItem(view: SessionView, item: Item) {
  if (item.callId !== undefined) {
    delete view.progress[item.callId];
  }
  storeItem(view, item);
}

/** storeItem replaces an item, or inserts it before all items that are not stored yet. The first item of an input replaces what showInput shows of it. */
function storeItem(view: SessionView, item: Item) {
  const at = indexOf(view, item.itemId);
  if (at >= 0) {
    delete view.live[item.itemId];
    view.items[at] = item;
    return;
  }
  const shown = view.items.filter(({ itemId, origin }) => itemId in view.live && origin?.inputId !== undefined && origin.inputId === item.origin?.inputId);
  const place = shown[0] ? indexOf(view, shown[0].itemId) : insertionIndex(view, item);
  view.items.splice(place, shown.length, item);
  shown.forEach(({ itemId }) => delete view.live[itemId]);
}

/** insertionIndex returns the index for a new item. An item of no turn goes before the running turn, as in the history. */
function insertionIndex(view: SessionView, { turnId }: Item): number {
  const after = view.items.findLastIndex(({ itemId }) => !(itemId in view.live)) + 1;
  if (turnId !== undefined) {
    return after;
  }
  const running = view.items.findIndex((item) => item.turnId !== undefined && (item.turnId === view.turnId || item.turnId in view.accepted));
  return running < 0 ? after : Math.min(running, after);
}

function removeItem(view: SessionView, id: ItemID | undefined) {
  const at = id === undefined ? -1 : indexOf(view, id);
  if (id !== undefined && at >= 0) {
    view.items.splice(at, 1);
    delete view.live[id];
  }
}

function appendDelta(view: SessionView, event: Event) {
  const { itemId = "", offset = 0, text = "" } = event;
  const have = view.live[itemId];
  const at = indexOf(view, itemId);
  const item = view.items[at];
  if (have === undefined || !item) {
    return;
  }
  const grown = append(item.text ?? "", have, text, offset);
  if (grown === undefined) {
    view.stale = true;
    return;
  }
  view.items[at] = { ...item, text: grown.text };
  view.live[itemId] = grown.bytes;
}

function removeDecision(view: SessionView, event: Event) {
  view.decisions = view.decisions.filter((decision) => decision.decisionId !== event.decision?.decisionId);
}

function changeTask(view: SessionView, event: Event) {
  const { task } = event;
  if (!task) {
    return;
  }
  const at = view.tasks.findIndex((known) => known.taskId === task.taskId);
  view.tasks.splice(at < 0 ? view.tasks.length : at, at < 0 ? 0 : 1, task);
}
