import { strict as assert } from "node:assert";
import type { State } from "../../src/daemon/daemon";
import { statusOf } from "../../src/model/status";
import { shownWhole } from "../../src/toasts";

const ready: State = { kind: "ready", server: { protocolVersion: 1, serverInfo: { name: "lashd", version: "1.2.3" }, clientId: "c", storeId: "s", epoch: 1, features: [], dataDir: "/home/me/lashd" } };

describe("part13/vscode the status bar", () => {
  it("says why lashd cannot start, also while it is still retried", () => {
    for (const kind of ["failing", "failed"] as const) {
      const { text, tooltip, warn } = statusOf({ kind, reason: 'config.toml: line 3: unknown key "modle"' }, [], 0, false);
      assert.deepEqual([text, tooltip, warn], ["$(error) lashd cannot start", 'config.toml: line 3: unknown key "modle"', true]);
    }
    assert.match(statusOf({ kind: "connecting" }, [], 0, false).text, /loading/);
  });

  it("keeps saying that a restart is needed, but questions come first", () => {
    assert.deepEqual([statusOf(ready, [], 0, true).text, statusOf(ready, [], 0, true).warn], ["$(warning) lashd: restart needed", true]);
    assert.equal(statusOf(ready, [], 2, true).text, "$(question) lashd: 2");
    assert.equal(statusOf(ready, [], 0, false).text, "$(check) lashd");
  });
});

describe("part13/vscode a notification without a button", () => {
  it("gets one if VS Code would cut its text", () => {
    assert.deepEqual(shownWhole("lashd: Removed docs."), ["lashd: Removed docs."]);
    const long = "lashd: The session changed. The comparison now shows the new state; confirm the restore again.";
    assert.deepEqual(shownWhole(long), [long, "Close"]);
    assert.deepEqual(shownWhole(long, "Show"), [long, "Show"]);
  });
});
