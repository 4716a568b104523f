import type { Event, Item, ItemID, QueuedInput } from "../protocol";
import { append, byteLength } from "./streamedText";
import type { SessionView } from "./session";

/** longest is how much of the output of a running call is kept, in characters. */
const longest = 32_768;

type Fold = (view: SessionView, event: Event) => void;

/** fold has what each event does to the draft of a view. Events that are not here change nothing that is shown. */
export const fold: Partial<Record<Event["type"], Fold>> = {
  "turn/accepted": (view, event) => {
    const inputId = event.inputIds?.[0];
    if (event.turnId !== undefined && inputId !== undefined) {
      view.accepted[event.turnId] = { inputId, input: event.input ?? [] };
    }
    if (view.turnId === undefined) {
      begin(view, event);
    }
  },
  "turn/started": begin,
  "input/accepted": (view, { inputIds, turnId = "", atMs }) => {
    for (const input of view.queue.filter((waiting) => inputIds?.includes(waiting.inputId))) {
      expect(view, { ...input, turnId, atMs });
    }
  },
  "turn/completed": (view, event) => {
    end(view, event);
  },
  "item/started": (view, event) => {
    if (event.item) {
      open(view, event.item, event.seq !== undefined);
    }
  },
  "item/delta": grow,
  "item/completed": (view, event) => {
    if (event.item) {
      complete(view, event.item);
    }
  },
  "item/retracted": (view, event) => {
    remove(view, event.itemId);
  },
  "tool/progress": (view, event) => {
    const id = event.toolCall?.callId;
    if (id !== undefined) {
      view.progress[id] = ((view.progress[id] ?? "") + (event.text ?? "")).slice(-longest);
    }
  },
  "decision/opened": (view, event) => {
    if (event.decision) {
      settle(view, event);
      view.decisions.push(event.decision);
    }
  },
  "decision/resolved": settle,
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
  "session/rewound": (view) => {
    view.stale = true;
  },
  "session/compacted": (view, { itemId, atMs }) => {
    if (itemId !== undefined) {
      store(view, { itemId, kind: "compaction", status: "completed", atMs });
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

/** begin has the turn run, and shows its input. */
function begin(view: SessionView, event: Event) {
  const { turnId = "", atMs } = event;
  view.turnId = turnId;
  const accepted = view.accepted[turnId];
  if (accepted) {
    expect(view, { ...accepted, turnId, atMs });
  }
}

/** expect shows an input of the running turn before its item comes, which is once the model has answered. */
export function expect(view: SessionView, { inputId, input, turnId, atMs }: Pick<QueuedInput, "inputId" | "input" | "turnId" | "atMs">) {
  if (view.items.some((item) => item.origin?.inputId === inputId)) {
    return;
  }
  const text = input.map((part) => part.text ?? "").join("");
  const origin: Item["origin"] = { kind: "turnInput", inputId };
  const item: Item = { itemId: `input:${inputId}`, text, kind: "userMessage", status: "inProgress", turnId, atMs, origin };
  view.items.push(item);
  view.live[item.itemId] = 0;
}

function end(view: SessionView, event: Event) {
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
  view.ends[turnId] = { turnId, outcome, usage, message: issues?.at(-1)?.message };
}

function place(view: SessionView, id: ItemID): number {
  return view.items.findLastIndex((item) => item.itemId === id);
}

/** open shows an item that is under way. */
export function open(view: SessionView, item: Item, durable: boolean) {
  if (durable) {
    store(view, item);
    return;
  }
  const at = place(view, item.itemId);
  if (at < 0) {
    view.items.push(item);
  } else if (item.itemId in view.live) {
    view.items[at] = item;
  } else {
    return;
  }
  view.live[item.itemId] = byteLength(item.text ?? "");
}

function complete(view: SessionView, item: Item) {
  if (item.callId !== undefined) {
    delete view.progress[item.callId];
  }
  store(view, item);
}

/** An item that is stored takes its place, or comes before all that is not. */
function store(view: SessionView, item: Item) {
  const input = item.origin?.inputId;
  let at = place(view, item.itemId);
  if (at < 0 && input !== undefined) {
    at = place(view, `input:${input}`);
  }
  if (at >= 0) {
    delete view.live[view.items[at]?.itemId ?? ""];
    view.items[at] = item;
    return;
  }
  view.items.splice(next(view, item), 0, item);
}

/** next is where a new item belongs. What is no turn's comes before a turn that runs: history has it there. */
function next(view: SessionView, { turnId }: Item): number {
  const after = view.items.findLastIndex(({ itemId }) => !(itemId in view.live)) + 1;
  if (turnId !== undefined) {
    return after;
  }
  const running = view.items.findIndex((item) => item.turnId !== undefined && (item.turnId === view.turnId || item.turnId in view.accepted));
  return running < 0 ? after : Math.min(running, after);
}

function remove(view: SessionView, id: ItemID | undefined) {
  const at = id === undefined ? -1 : place(view, id);
  if (id !== undefined && at >= 0) {
    view.items.splice(at, 1);
    delete view.live[id];
  }
}

function grow(view: SessionView, event: Event) {
  const { itemId = "", offset = 0, text = "" } = event;
  const have = view.live[itemId];
  const at = place(view, itemId);
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

function settle(view: SessionView, event: Event) {
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
