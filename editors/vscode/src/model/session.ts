import type {
  CallID,
  Decision,
  Event,
  FilePoint,
  InputID,
  InputPart,
  Item,
  ItemID,
  NodeID,
  QueuedInput,
  RetryStatus,
  Seq,
  Session,
  SessionAttachResult,
  SessionReadResult,
  Task,
  TurnID,
  TurnOutcome,
  Usage,
} from "../protocol";
import { showInput, reducers, openItem } from "./reducers";

/** TurnEnd is the outcome of a finished turn, shown below its items. */
export interface TurnEnd {
  turnId: TurnID;
  outcome?: TurnOutcome;
  usage?: Usage;
  message?: string;
  /** code of the problem that ended the turn */
  code?: string;
}

/** SessionView is the state of a session that the chat shows. It is plain data. The extension and its webviews apply the same events to it. */
export interface SessionView {
  session: Session;
  /** of the newest durable event in the view */
  seq: Seq;
  items: Item[];
  /** cursor of the page before the first item; undefined: there is none */
  older?: string;
  /** length in bytes of the text of each item that is not stored yet */
  live: Record<ItemID, number>;
  /** output of running calls so far */
  progress: Record<CallID, string>;
  decisions: Decision[];
  queue: QueuedInput[];
  /** inputs of unfinished turns */
  accepted: Record<TurnID, { inputId: InputID; input: InputPart[] }>;
  tasks: Task[];
  ends: Record<TurnID, TurnEnd>;
  /** file changes of turns */
  points: Record<TurnID, FilePoint>;
  /** the running turn */
  turnId?: TurnID;
  /** token usage of the session */
  total?: Usage;
  /** token usage of the newest model call; absent: none since the history was compacted */
  context?: Usage;
  retry?: RetryStatus;
  /** the answer to an attach, applied when the replay reaches its seq */
  due?: SessionAttachResult;
  /** events are missing: attach again without a cursor */
  stale?: boolean;
}

/** snapshot returns a new view from an answer to session/attach. Use it without a cursor or after a gap. */
export function snapshot(r: SessionAttachResult): SessionView {
  const view: SessionView = {
    session: r.session,
    seq: r.seq,
    items: [...(r.items ?? [])],
    older: r.nextCursor,
    live: {},
    progress: {},
    decisions: [],
    queue: [],
    accepted: {},
    tasks: [],
    ends: {},
    points: {},
    context: r.context,
  };
  return applyAttach(view, r);
}

/** replay returns the view after an attach with its seq as the cursor. It drops items that were not durable. Missed events follow. */
export function replay(view: SessionView, r: SessionAttachResult): SessionView {
  const items = view.items.filter((item) => !(item.itemId in view.live));
  const next: SessionView = { ...view, items, live: {}, progress: {}, retry: undefined, stale: undefined };
  return next.seq >= r.seq ? applyAttach(next, r) : { ...next, due: r };
}

/** page returns the view with a page of older items. */
export function page(view: SessionView, r: SessionReadResult): SessionView {
  const known = new Set(view.items.map((item) => item.itemId));
  return { ...view, items: [...r.data.filter((item) => !known.has(item.itemId)), ...view.items], older: r.nextCursor };
}

/** withTurnEnds returns the view with the outcomes and file changes of earlier turns. */
export function withTurnEnds(view: SessionView, ends: TurnEnd[], points: FilePoint[]): SessionView {
  const changed = points.flatMap((point) => (point.turnId === undefined ? [] : [[point.turnId, point] as const]));
  return {
    ...view,
    ends: { ...Object.fromEntries(ends.map((end) => [end.turnId, end])), ...view.ends },
    points: { ...Object.fromEntries(changed), ...view.points },
  };
}

/** reduce returns the view after events, which must be in order. It skips durable events that the view already contains. */
export function reduce(view: SessionView, events: readonly Event[]): SessionView {
  const next = copyOf(view);
  for (const event of events) {
    if (event.seq !== undefined) {
      if (event.seq <= next.seq) {
        continue;
      }
      next.stale = event.seq === next.seq + 1 ? next.stale : true;
      next.seq = event.seq;
    }
    reducers[event.type]?.(next, event);
    if (next.due && next.seq >= next.due.seq) {
      Object.assign(next, applyAttach(next, next.due));
    }
  }
  return next;
}

function copyOf(view: SessionView): SessionView {
  return {
    ...view,
    items: [...view.items],
    live: { ...view.live },
    progress: { ...view.progress },
    decisions: [...view.decisions],
    accepted: { ...view.accepted },
    tasks: [...view.tasks],
    ends: { ...view.ends },
    points: { ...view.points },
  };
}

/** applyAttach returns the view with the current state from an attach, once all missed events are applied. */
function applyAttach(view: SessionView, r: SessionAttachResult): SessionView {
  const next = copyOf(view);
  for (const input of r.entered ?? []) {
    showInput(next, input);
  }
  for (const item of r.openItems ?? []) {
    openItem(next, item, false);
  }
  for (const { turnId, inputId, input } of [...(r.entered ?? []), ...r.queue]) {
    next.accepted[turnId] ??= { inputId, input };
  }
  return { ...next, session: r.session, decisions: r.decisions, queue: r.queue, tasks: r.tasks, turnId: r.turnId, due: undefined };
}

/** nodeOf returns the node that contains an item. */
export function nodeOf(itemId: ItemID): NodeID {
  return itemId.slice(0, itemId.lastIndexOf(":"));
}
