import { strict as assert } from "node:assert";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { demoSocket } from "../../src/daemon/demoSocket";

describe("part/13 the socket of the demo", () => {
  const runtime = mkdtempSync(join(tmpdir(), "demo-"));
  const profile = (name: string) => join("/home/me/.config/Code/User", name, "globalStorage", "lash.lashd", "demo");
  after(() => rmSync(runtime, { recursive: true }));

  it("differs between profiles, so that each has a demo of its own", () => {
    const [work, play] = [demoSocket(profile("profiles/work"), runtime), demoSocket(profile("profiles/play"), runtime)];
    assert.notEqual(work, play);
    assert.equal(demoSocket(profile("profiles/work"), runtime), work); // the windows of a profile share it
  });

  it("is short, in a directory that only the user can read", () => {
    const socket = demoSocket(profile(`profiles/${"long".repeat(40)}`), runtime);
    assert.ok(socket.length - runtime.length < 40, socket);
    assert.equal(statSync(dirname(socket)).mode & 0o777, 0o700);
  });
});
