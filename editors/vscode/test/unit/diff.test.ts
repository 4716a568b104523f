import { strict as assert } from "node:assert";
import { parse, hunkSides, revertHunks } from "../../src/model/diff";

const diff = "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n-x\n+z\n y\n-- w\n+- v\n@@ -9,2 +9,3 @@\n i\n+j\n k\n";
const before = "x\ny\n- w\nd\ne\nf\ng\nh\ni\nk\n";
const after = "z\ny\n- v\nd\ne\nf\ng\nh\ni\nj\nk\n";

describe("issue/6-1 a diff", () => {
  it("is reverted in an unchanged file", () => {
    assert.equal(revertHunks(after, parse(diff)), before);
  });

  it("is not reverted in a changed file", () => {
    assert.equal(revertHunks(after.replace("z", "zz"), parse(diff)), undefined);
    assert.equal(revertHunks("", parse(diff)), undefined);
  });

  it("of a new file reverts to an empty text", () => {
    assert.equal(revertHunks("x\ny\n", parse("--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1,2 @@\n+x\n+y\n")), "");
  });

  it("has two sides", () => {
    assert.deepEqual(hunkSides(parse(diff)), { before: "x\ny\n- w\n...\ni\nk", after: "z\ny\n- v\n...\ni\nj\nk" });
  });
});
