import type {
  CallID,
  Decision,
  Event,
  FilePoint,
  InputID,
  InputPart,
  Item,
  ItemID,
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
import { expect, fold, open } from "./fold";

/** TurnEnd is what is shown below the items of a turn that is over. */
export interface TurnEnd {
  turnId: TurnID;
  outcome?: TurnOutcome;
  usage?: Usage;
  message?: string;
}

/** SessionView is what a client shows of a session. It is plain data: the extension and its webviews fold the same events into it. */
export interface SessionView {
  session: Session;
  /** of the newest durable event that is in it */
  seq: Seq;
  items: Item[];
  /** where the items before the first one are */
  older?: string;
  /** items that are shown and not stored, and the bytes of their text */
  live: Record<ItemID, number>;
  /** what running calls have put out so far */
  progress: Record<CallID, string>;
  decisions: Decision[];
  queue: QueuedInput[];
  /** inputs of turns that are not over */
  accepted: Record<TurnID, { inputId: InputID; input: InputPart[] }>;
  tasks: Task[];
  ends: Record<TurnID, TurnEnd>;
  /** what turns did to files */
  points: Record<TurnID, FilePoint>;
  /** the running turn */
  turnId?: TurnID;
  /** of the session */
  total?: Usage;
  retry?: RetryStatus;
  /** holds once a replay has come to its seq */
  due?: SessionAttachResult;
  /** it cannot be told by events: attach without a cursor */
  stale?: boolean;
}

/** snapshot is the view that an answer of session/attach without a cursor, or with a gap, begins. */
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
  };
  return arrive(view, r);
}

/** replay is the view after an attach with its seq as the cursor: what was not durable is void, and the events between are still to come. */
export function replay(view: SessionView, r: SessionAttachResult): SessionView {
  const items = view.items.filter((item) => !(item.itemId in view.live));
  const next: SessionView = { ...view, items, live: {}, progress: {}, retry: undefined, stale: undefined };
  return next.seq >= r.seq ? arrive(next, r) : { ...next, due: r };
}

/** page is the view with a page of older items. */
export function page(view: SessionView, r: SessionReadResult): SessionView {
  const known = new Set(view.items.map((item) => item.itemId));
  return { ...view, items: [...r.data.filter((item) => !known.has(item.itemId)), ...view.items], older: r.nextCursor };
}

/** withPast is the view with how turns ended before it began, and what they did to files. */
export function withPast(view: SessionView, ends: TurnEnd[], points: FilePoint[]): SessionView {
  const changed = points.flatMap((point) => (point.turnId === undefined ? [] : [[point.turnId, point] as const]));
  return {
    ...view,
    ends: { ...Object.fromEntries(ends.map((end) => [end.turnId, end])), ...view.ends },
    points: { ...Object.fromEntries(changed), ...view.points },
  };
}

/** reduce is the view after events, in their order. Durable ones that are in it already change nothing. */
export function reduce(view: SessionView, events: readonly Event[]): SessionView {
  const next = draft(view);
  for (const event of events) {
    if (event.seq !== undefined) {
      if (event.seq <= next.seq) {
        continue;
      }
      next.stale = event.seq === next.seq + 1 ? next.stale : true;
      next.seq = event.seq;
    }
    fold[event.type]?.(next, event);
    if (next.due && next.seq >= next.due.seq) {
      Object.assign(next, arrive(next, next.due));
    }
  }
  return next;
}

function draft(view: SessionView): SessionView {
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

/** what is current when a client has caught up */
function arrive(view: SessionView, r: SessionAttachResult): SessionView {
  const next = draft(view);
  for (const input of r.entered ?? []) {
    expect(next, input);
  }
  for (const item of r.openItems ?? []) {
    open(next, item, false);
  }
  for (const { turnId, inputId, input } of [...(r.entered ?? []), ...r.queue]) {
    next.accepted[turnId] ??= { inputId, input };
  }
  return { ...next, session: r.session, decisions: r.decisions, queue: r.queue, tasks: r.tasks, turnId: r.turnId, due: undefined };
}
