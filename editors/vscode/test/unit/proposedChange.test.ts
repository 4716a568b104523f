import { strict as assert } from "node:assert";
import { previewTitle, unshownText } from "../../src/model/proposedChange";
import type { ApprovalDetail, Decision, FilePreview } from "../../src/protocol";

const file = (more: Partial<FilePreview> = {}): FilePreview => ({ path: "a.txt", kind: "change", added: 1, removed: 2, ...more });
const decision = (detail: Partial<ApprovalDetail>) => ({ detail: { why: { by: "default", text: "" }, ...detail } }) as Decision;

describe("a proposed change in an editor", () => {
  it("has a title that says if the call changes more", () => {
    assert.equal(previewTitle(decision({ files: [file()] }), 0), "a.txt (proposed change)");
    assert.equal(previewTitle(decision({ files: [file({ cut: true })] }), 0), "a.txt (a part of the proposed change)");
    assert.equal(previewTitle(decision({ files: [file(), file({ path: "b.txt" })] }), 1), "b.txt (proposed change, file 2 of 2)");
  });

  it("is allowed with one click only if the editor shows all of the call", () => {
    assert.equal(unshownText(decision({ files: [file()] })), "");
    assert.equal(unshownText(decision({ files: [file(), file({ path: "b.txt", kind: "delete", added: 0 })] })), "Change a.txt +1 \u22122\nDelete b.txt +0 \u22122");
    assert.equal(unshownText(decision({ files: [file({ binary: true })] })), "Change a.txt +1 \u22122. The file is not text, so there is no diff.");
    assert.equal(unshownText(decision({ files: [file()], hosts: ["a.test"] })), "Change a.txt +1 \u22122\nNetwork: a.test");
    assert.equal(unshownText(decision({ files: [file()], command: { command: "make", dir: "/w" } })), "Change a.txt +1 \u22122\nmake");
  });
});
