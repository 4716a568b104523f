import { strict as assert } from "node:assert";
import { age, children, sessionsInGroup, applyServerEvent, isInFolders, type SessionList } from "../../src/model/sessions";
import type { Session } from "../../src/protocol";
import { session } from "./turn";

const make = (sessionId: string, more: Partial<Session>): Session => ({ ...session, sessionId, ...more });
const ids = (sessions: Session[]) => sessions.map((s) => s.sessionId);

const list: SessionList = new Map(
  [
    make("old", { updatedAtMs: 1 }),
    make("new", { updatedAtMs: 2 }),
    make("busy", { state: "running" }),
    make("asks", { state: "requiresAction", cwd: "/workshop" }),
    make("away", { archived: true, state: "running" }),
    make("child", { relation: { kind: "child", parent: "busy" } }),
    make("orphan", { relation: { kind: "child", parent: "gone" }, updatedAtMs: 3 }),
  ].map((s) => [s.sessionId, s]),
);

describe("issue/6-1 the list of sessions", () => {
  it("has groups, newest first, and children below their parents", () => {
    assert.deepEqual(ids(sessionsInGroup(list, "idle", undefined)), ["orphan", "new", "old"]);
    assert.deepEqual(ids(sessionsInGroup(list, "running", undefined)), ["busy"]);
    assert.deepEqual(ids(sessionsInGroup(list, "requiresAction", undefined)), ["asks"]);
    assert.deepEqual(ids(sessionsInGroup(list, "archived", undefined)), ["away"]);
    assert.deepEqual(ids(children(list, "busy")), ["child"]);
  });

  it("can be limited to the open folders", () => {
    assert.deepEqual(ids(sessionsInGroup(list, "requiresAction", ["/work"])), []);
    assert.equal(isInFolders(make("x", { cwd: "/work/sub" }), ["/work"]), true);
    assert.equal(isInFolders(make("x", { cwd: "/work" }), ["/work/"]), false);
  });

  it("follows server events", () => {
    const changed = applyServerEvent(list, { atMs: 1, type: "session/changed", sessionId: "busy", session: make("busy", { state: "idle" }) });
    assert.equal(changed.get("busy")?.state, "idle");
    assert.equal(list.get("busy")?.state, "running");
    assert.equal(applyServerEvent(list, { atMs: 1, type: "session/deleted", sessionId: "busy" }).has("busy"), false);
  });

  it("shows ages", () => {
    assert.deepEqual([0, 59_000, 60_000, 7_200_000, 200_000_000].map((ms) => age(0, ms)), ["now", "now", "1 min", "2 h", "2 d"]);
  });
});
