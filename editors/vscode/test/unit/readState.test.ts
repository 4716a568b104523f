import { strict as assert } from "node:assert";
import type { Memento } from "vscode";
import type { Session } from "../../src/protocol";
import { ReadState } from "../../src/views/readState";
import { session } from "./turn";

describe("part13/vscode what the user has seen of a session", () => {
  const stored = new Map<string, unknown>();
  const memento = { get: (key: string) => stored.get(key), update: (key: string, value: unknown) => Promise.resolve(stored.set(key, structuredClone(value))) } as unknown as Memento;
  const at = (seq: number): Session => ({ ...session, seq });

  it("says when it changes, so that the list can be drawn again, and survives a restart", () => {
    const first = new ReadState(memento);
    assert.equal(first.unread(at(4)), false);
    assert.deepEqual([first.mark("ses_1", 3), first.mark("ses_1", 3), first.mark("ses_1", 2)], [true, false, false]);
    const later = new ReadState(memento);
    assert.equal(later.unread(at(4)), true);
    assert.equal(later.mark("ses_1", 4), true);
    assert.equal(later.unread(at(4)), false);
  });
});
