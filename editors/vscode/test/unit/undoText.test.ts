import { strict as assert } from "node:assert";
import { detailOf, undoneText } from "../../src/model/undoText";
import type { FileRewind } from "../../src/protocol";

const file = (path: string, more: Partial<FileRewind> = {}): FileRewind => ({ path, effect: "created", kind: "file", added: 1, ...more });
const directory = file("src/legacy", { kind: "directory" });

describe("part13/26 the texts of an undo", () => {
  it("count files, and not their directories", () => {
    assert.equal(undoneText(false, [directory, file("src/legacy/a.ts")]), "Restored 1 file.");
    assert.equal(undoneText(true, [file("a"), file("b", { unkept: "tooLarge" })]), "Undid a part of the conversation. Restored 1 of 2 files.");
    assert.equal(undoneText(true, undefined), "Undid a part of the conversation.");
  });

  it("list files, and a directory only if something is wrong with it", () => {
    assert.equal(detailOf([directory, file("src/legacy/a.ts")]), "src/legacy/a.ts will be restored (+1 \u22120).");
    assert.match(detailOf([{ ...directory, conflict: "changedSince" }]), /^src\/legacy will be restored.*Later changes to it will be lost\.$/);
  });
});
