import { strict as assert } from "node:assert";
import { resolve } from "node:path";
import { patienceMs } from "./browser";
import { script } from "./script";
import { Workbench } from "./workbench";

describe("issue/6-1 the extension host", function () {
  this.timeout(4 * patienceMs);
  const code = new Workbench();
  after(() => code.close());

  it("passes the tests of test/host", async () => {
    const { code: exit, said } = await code.runTests(script, resolve("."), resolve("dist/test/host/index.js"));
    assert.equal(exit, 0, said);
    assert.match(said, /13 passing/);
  });
});
