import { strict as assert } from "node:assert";
import type { FilePoint } from "../../src/protocol";
import { filesText } from "../../src/webview/rows";

const point = (more: Partial<FilePoint>): FilePoint => ({ pointId: "fpt_1", sessionId: "s", kind: "turn", state: "closed", atMs: 1, files: 0, ...more });

describe("the file changes of a turn", () => {
  it("counts directories only if nothing else changed", () => {
    assert.equal(filesText(point({ files: 1, directories: 1 })), "1 file changed");
    assert.equal(filesText(point({ files: 2, undone: true })), "2 files changed, undone");
    assert.equal(filesText(point({ directories: 1 })), "1 directory changed");
    assert.equal(filesText(point({ directories: 2 })), "2 directories changed");
    assert.equal(filesText(point({})), "");
    assert.equal(filesText(undefined), "");
  });
});
