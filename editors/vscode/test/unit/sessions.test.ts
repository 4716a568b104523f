import { strict as assert } from "node:assert";
import { age, applyServerEvent, isInFolders, outlineOf, recentSessions, titleFrom, titleOf, type SessionList } from "../../src/model/sessions";
import { hasFinished } from "../../src/model/finished";
import type { Session } from "../../src/protocol";
import { session } from "./turn";

const make = (sessionId: string, more: Partial<Session>): Session => ({ ...session, sessionId, ...more });
const ids = (sessions: Session[]) => sessions.map((s) => s.sessionId);

const list: SessionList = new Map(
  [
    make("old", { updatedAtMs: 1, turnIndex: 1 }),
    make("new", { updatedAtMs: 2, title: "named" }),
    make("unused", { updatedAtMs: 4 }),
    make("busy", { state: "running" }),
    make("asks", { state: "requiresAction", cwd: "/workshop" }),
    make("away", { archived: true, state: "running" }),
    make("child", { relation: { kind: "child", parent: "busy" } }),
    make("orphan", { relation: { kind: "child", parent: "gone" }, updatedAtMs: 3 }),
  ].map((s) => [s.sessionId, s]),
);

describe("issue/6-1 the list of sessions", () => {
  it("has groups, newest first, without unused sessions, and children below their parents", () => {
    const { groups, children } = outlineOf(list, undefined);
    assert.deepEqual(Object.entries(groups).map(([group, all]) => [group, ids(all).join()]), [["requiresAction", "asks"], ["running", "busy"], ["idle", "orphan,new,old"], ["archived", "away"]]);
    assert.deepEqual([...children].map(([id, all]) => [id, ids(all).join()]), [["busy", "child"]]);
  });

  it("can be limited to the open folders", () => {
    assert.deepEqual(ids(outlineOf(list, ["/work"]).groups.requiresAction), []);
    assert.equal(isInFolders(make("x", { cwd: "/work/sub" }), ["/work"]), true);
    assert.equal(isInFolders(make("x", { cwd: "/work" }), ["/work/"]), false);
  });

  it("part/13 is read once for an outline, whatever its size", () => {
    let reads = 0;
    const counted = (made: Session) => new Proxy(made, { get: (target, key) => (reads += key === "relation" ? 1 : 0, Reflect.get(target, key) as unknown) });
    const many: SessionList = new Map(Array.from({ length: 5000 }, (_, n) => [`s${n}`, counted(make(`s${n}`, { turnIndex: 1, ...(n % 2 && { relation: { kind: "child", parent: `s${n - 1}` } }) }))]));
    const { groups, children } = outlineOf(many, undefined);
    assert.deepEqual([groups.idle.length, children.size, reads], [2500, 2500, 5000]);
  });

  it("follows server events", () => {
    const changed = applyServerEvent(list, { atMs: 1, type: "session/changed", sessionId: "busy", session: make("busy", { state: "idle" }) });
    assert.equal(changed.get("busy")?.state, "idle");
    assert.equal(list.get("busy")?.state, "running");
    assert.equal(applyServerEvent(list, { atMs: 1, type: "session/deleted", sessionId: "busy" }).has("busy"), false);
  });

  it("part/13 titles a session by the beginning of its input, and cuts no word", () => {
    const long = "Explain the way in which the daemon of this project stores what a model has answered before it tells anyone about it";
    assert.equal(titleFrom(`  ${long}\nand more`), "Explain the way in which the daemon of this project stores what a model has answered before it\u2026");
    assert.deepEqual([titleFrom("short\nmore"), titleFrom(" ")], ["short", ""]);
    assert.deepEqual([titleOf(make("ses_123456", { firstInput: "hello" })), titleOf(make("ses_123456", { title: "t", firstInput: "hello" })), titleOf(make("ses_123456", {})), titleOf(make("ses_123456", { turnIndex: 1 }))], ["hello", "t", "New session", "Session 123456"]);
  });

  it("shows ages", () => {
    assert.deepEqual([0, 59_000, 60_000, 7_200_000, 200_000_000].map((ms) => age(0, ms)), ["now", "now", "1 min", "2 h", "2 d"]);
  });

  it("part/13 lists the sessions of the same folder that people used last", () => {
    const used = (id: string, updatedAtMs: number, more: Partial<Session> = {}): [string, Session] => [id, make(id, { title: id, updatedAtMs, turnIndex: 1, ...more })];
    const all: SessionList = new Map([used("this", 9), used("old", 1), used("new", 60_000), used("away", 8, { cwd: "/else" }), used("gone", 7, { archived: true }), used("empty", 6, { turnIndex: 0 }), used("child", 5, { relation: { kind: "child", parent: "old" } })]);
    assert.deepEqual(recentSessions(all, "this", 120_000), [{ sessionId: "new", title: "new", age: "1 min" }, { sessionId: "old", title: "old", age: "2 min" }]);
  });

  it("part/13 knows when a turn has ended", () => {
    const running = make("s", { state: "running", turnIndex: 3 });
    const idle = make("s", { state: "idle", turnIndex: 4 });
    assert.deepEqual([hasFinished(running, idle), hasFinished({ ...running, state: "requiresAction" }, idle)], [true, true]);
    const no = [hasFinished(undefined, idle), hasFinished(idle, idle), hasFinished(running, { ...idle, turnIndex: 3 }), hasFinished(running, { ...idle, state: "running" }), hasFinished(running, { ...idle, relation: { kind: "child", parent: "p" } })];
    assert.deepEqual(no, [false, false, false, false, false]);
  });
});
