import type { ServerEvent, Session, SessionID, SessionState } from "../protocol";

/** SessionList maps session ids to sessions. */
export type SessionList = ReadonlyMap<SessionID, Session>;

/** applyServerEvent returns the list after a server event. */
export function applyServerEvent(list: SessionList, news: ServerEvent): SessionList {
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

/** Group is the heading under which a session is listed. */
export type Group = SessionState | "archived";

/** groups lists the groups and their titles in display order. */
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

/** Outline is the order in which a list of sessions is shown. */
export interface Outline {
  /** the sessions of each group, newest first, without subagents */
  groups: Record<Group, Session[]>;
  /** the subagents of each session, newest first */
  children: ReadonlyMap<SessionID, Session[]>;
}

/** outlineOf returns the outline of a list in one pass over its sessions, without unused ones. folders filters by folder; undefined means all. */
export function outlineOf(list: SessionList, folders: readonly string[] | undefined): Outline {
  const inGroups: Record<Group, Session[]> = { requiresAction: [], running: [], idle: [], archived: [] };
  const children = new Map<SessionID, Session[]>();
  for (const session of newestFirst([...list.values()])) {
    const parent = parentOf(list, session);
    if (isUnused(session)) {
      continue; // its chat shows it
    }
    if (parent !== undefined) {
      const siblings = children.get(parent) ?? [];
      siblings.push(session);
      children.set(parent, siblings);
    } else if (isInFolders(session, folders)) {
      inGroups[groupOf(session)].push(session);
    }
  }
  return { groups: inGroups, children };
}

/** isUnused reports whether a session has had no turn and has no title. Lists do not show it. */
export function isUnused(session: Session): boolean {
  return session.turnIndex === 0 && session.state === "idle" && !session.title && !session.firstInput && session.relation.kind === "root";
}

/** parentOf returns the session that a subagent works for, or undefined if the list does not contain it. */
export function parentOf(list: SessionList, session: Session): SessionID | undefined {
  const { parent } = session.relation;
  return parent !== undefined && list.has(parent) ? parent : undefined;
}

/** isInFolders reports whether a session works in one of the folders or below. Their paths have no symbolic links. It returns true if folders is undefined. */
export function isInFolders(session: Pick<Session, "cwd">, folders: readonly string[] | undefined): boolean {
  return !folders || folders.some((dir) => session.cwd === dir || session.cwd.startsWith(dir.replace(/[/\\]?$/, "/")));
}

function newestFirst(sessions: Session[]): Session[] {
  return sessions.sort((a, b) => b.updatedAtMs - a.updatedAtMs);
}

/** titleOf returns the title of a session, else the beginning of its first input, else a title made from its id if it has had a turn. */
export function titleOf({ title, firstInput = "", sessionId, turnIndex }: Session): string {
  return title || titleFrom(firstInput) || (turnIndex === 0 ? "New session" : `Session ${sessionId.slice(-6)}`);
}

/** The longest title that is made from an input, in characters. */
const maxTitle = 100;

/** titleFrom returns a title for a session with an input: its first line, which ends after a whole word if it is too long. */
export function titleFrom(input: string): string {
  const line = input.trim().split("\n")[0]?.trim() ?? "";
  if (line.length <= maxTitle) {
    return line;
  }
  const words = line.slice(0, maxTitle).replace(/\s+\S*$/, "");
  return `${words}\u2026`;
}

/** The number of other sessions that a new chat lists. */
const maxRecent = 5;

/** recentSessions returns the other sessions of the directory of a session that people used last. */
export function recentSessions(list: SessionList, id: SessionID, nowMs: number): { sessionId: SessionID; title: string; age: string }[] {
  const cwd = list.get(id)?.cwd;
  const others = [...list.values()].filter((one) => one.sessionId !== id && one.cwd === cwd && !one.archived && one.turnIndex > 0 && one.relation.parent === undefined);
  return newestFirst(others).slice(0, maxRecent).map((one) => ({ sessionId: one.sessionId, title: titleOf(one), age: age(one.updatedAtMs, nowMs) }));
}

/** counted returns a number with its noun, such as "1 file" or "2 files". */
export function counted(n: number, noun: string): string {
  return n === 1 ? `1 ${noun}` : `${n} ${noun}s`;
}

/** age returns the time between two moments as a short text, such as "2 h". */
export function age(atMs: number, nowMs: number): string {
  const seconds = Math.max(0, Math.round((nowMs - atMs) / 1000));
  const steps: [number, string][] = [[86_400, "d"], [3600, "h"], [60, "min"]];
  const step = steps.find(([size]) => seconds >= size);
  return step ? `${Math.floor(seconds / step[0])} ${step[1]}` : "now";
}
