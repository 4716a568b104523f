import type { ServerEvent, Session, SessionID, SessionState } from "../protocol";

/** SessionList is what is known of sessions, by id. */
export type SessionList = ReadonlyMap<SessionID, Session>;

/** told is the list after news of the daemon. */
export function told(list: SessionList, news: ServerEvent): SessionList {
  if (news.type === "session/changed" && news.session) {
    return new Map(list).set(news.session.sessionId, news.session);
  }
  if (news.type === "session/deleted" && news.sessionId !== undefined) {
    const rest = new Map(list);
    rest.delete(news.sessionId);
    return rest;
  }
  return list;
}

/** Group is where a session is shown. */
export type Group = SessionState | "archived";

/** groups are in the order in which they are shown, with their titles. */
export const groups: readonly [Group, string][] = [
  ["requiresAction", "Waiting for you"],
  ["running", "Running"],
  ["idle", "Idle"],
  ["archived", "Archived"],
];

/** groupTitle returns the title of a group. */
export function groupTitle(group: Group): string {
  return groups.find(([known]) => known === group)?.[1] ?? group;
}

export function groupOf(session: Session): Group {
  return session.archived ? "archived" : session.state;
}

/** shown are the sessions of a group, newest first; those that work for others are below these. */
export function shown(list: SessionList, group: Group, folders: readonly string[] | undefined): Session[] {
  return newestFirst([...list.values()].filter((s) => groupOf(s) === group && !parentOf(list, s) && within(s, folders)));
}

/** children are the sessions that work for one. */
export function children(list: SessionList, id: SessionID): Session[] {
  return newestFirst([...list.values()].filter((s) => parentOf(list, s) === id));
}

/** parentOf is the session that one works for, if it is there still. */
export function parentOf(list: SessionList, session: Session): SessionID | undefined {
  const { parent } = session.relation;
  return parent !== undefined && list.has(parent) ? parent : undefined;
}

/** within tells whether a session is of one of the folders; without folders, all are. */
export function within(session: Session, folders: readonly string[] | undefined): boolean {
  return !folders || folders.some((dir) => session.cwd === dir || session.cwd.startsWith(dir.replace(/[/\\]?$/, "/")));
}

function newestFirst(sessions: Session[]): Session[] {
  return sessions.sort((a, b) => b.updatedAtMs - a.updatedAtMs);
}

/** titleOf is what a person knows a session by. */
export function titleOf(session: Session): string {
  return session.title || `Session ${session.sessionId.slice(-6)}`;
}

/** counted returns a number with its noun, such as "1 file" or "2 files". */
export function counted(n: number, noun: string): string {
  return n === 1 ? `1 ${noun}` : `${n} ${noun}s`;
}

/** age is how long ago something was, in a few characters. */
export function age(atMs: number, nowMs: number): string {
  const seconds = Math.max(0, Math.round((nowMs - atMs) / 1000));
  const steps: [number, string][] = [[86_400, "d"], [3600, "h"], [60, "min"]];
  const step = steps.find(([size]) => seconds >= size);
  return step ? `${Math.floor(seconds / step[0])} ${step[1]}` : "now";
}
