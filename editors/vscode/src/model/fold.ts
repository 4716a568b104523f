import type { Event, Item, ItemID } from "../protocol";
import { append, byteLength } from "./bytes";
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

/** begin shows the input of a turn before its item comes, which is once the model has answered. */
function begin(view: SessionView, event: Event) {
  const { turnId = "", atMs } = event;
  view.turnId = turnId;
  const accepted = view.accepted[turnId];
  if (!accepted || view.items.some((item) => item.origin?.inputId === accepted.inputId)) {
    return;
  }
  const { inputId, input } = accepted;
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
  if (at < 0 && input !== undefined && item.kind === "userMessage") {
    at = place(view, `input:${input}`);
  }
  if (at >= 0) {
    delete view.live[view.items[at]?.itemId ?? ""];
    view.items[at] = item;
    return;
  }
  let before = view.items.length;
  while (before > 0 && (view.items[before - 1]?.itemId ?? "") in view.live) {
    before--;
  }
  view.items.splice(before, 0, item);
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
