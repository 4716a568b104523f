import { strict as assert } from "node:assert";
import { RunOnce } from "../../src/model/runOnce";

describe("issue/6-1 calls of editor tools", () => {
  it("run once, however often they are requested", async () => {
    const calls = new RunOnce<number>();
    let ran = 0;
    const begin = () => Promise.resolve(++ran);
    assert.deepEqual(await Promise.all([calls.run("a", begin), calls.run("a", begin), calls.run("b", begin)]), [1, 1, 2]);
    assert.equal(await calls.run("a", begin), 1);
  });

  it("are aborted and forgotten when they are cancelled", async () => {
    const calls = new RunOnce<boolean>();
    let signal: AbortSignal | undefined;
    const begin = (given: AbortSignal) => ((signal = given), Promise.resolve(true));
    await calls.run("a", begin);
    const first = signal;
    calls.cancel("a");
    calls.cancel("b");
    assert.equal(first?.aborted, true);
    await calls.run("a", begin);
    assert.notEqual(signal, first);
  });

  it("can be requested again if they failed", async () => {
    const calls = new RunOnce<string>();
    await assert.rejects(calls.run("a", () => Promise.reject(new Error("the daemon is away"))));
    assert.equal(await calls.run("a", () => Promise.resolve("done")), "done");
  });
});
