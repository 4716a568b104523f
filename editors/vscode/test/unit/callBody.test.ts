import { strict as assert } from "node:assert";
import { parseHTML } from "linkedom";
import type { FromWebview } from "../../src/chat/messages";
import type { Item } from "../../src/protocol";
import { Items } from "../../src/webview/items";

describe("part13/61 the details of a call", () => {
  before(() => {
    Object.assign(globalThis, { document: parseHTML("<html><body></body></html>").document });
  });
  after(() => {
    Reflect.deleteProperty(globalThis, "document");
  });

  it("show the files of one change with a title and a diff each", () => {
    const posted: FromWebview[] = [];
    const diff = "--- a/a.go\n+++ b/a.go\n@@ -1 +1 @@\n-x\n+y\n--- /dev/null\n+++ b/b.go\n@@ -0,0 +1,2 @@\n+one\n+two\n--- a/c.go\n+++ /dev/null\n@@ -1 +0,0 @@\n--- old\n";
    const item: Item = { itemId: "c", kind: "toolCall", status: "completed", atMs: 1, callId: "k", tool: "patch", args: { patch: "" }, output: { status: "success", change: { path: "a.go", diff, added: 3, removed: 2 } } };
    const element = new Items((message) => posted.push(message)).row({ key: "c", version: 1, item, live: false }, undefined);
    assert.deepEqual([...element.querySelectorAll("details > .facts")].map((one) => one.textContent), ["a.go +1 \u22121", "b.go +2 \u22120", "c.go +0 \u22121"]);
    assert.deepEqual([...element.querySelectorAll(".diff")].map((one) => one.textContent), ["1- x\n1+ y\n", "1+ one\n2+ two\n", "1- -- old\n"]);
    [...element.querySelectorAll("button")].filter((b) => b.textContent === "Open diff")[1]?.click();
    assert.deepEqual(posted.filter(({ type }) => type === "diff"), [{ type: "diff", change: { path: "b.go", diff: diff.slice(diff.indexOf("--- /dev"), diff.indexOf("--- a/c")), added: 2, removed: 0 } }]);
  });

  it("align the numbers of lines to the right, in no more columns than the largest has digits", () => {
    const change = { path: "a.txt", diff: "--- a/a.txt\n+++ b/a.txt\n@@ -9,2 +9,2 @@\n nine\n-ten\n+TEN\n", added: 1, removed: 1 };
    const item: Item = { itemId: "c", kind: "toolCall", status: "completed", atMs: 1, callId: "k", tool: "patch", args: { patch: "" }, output: { status: "success", change } };
    const element = new Items(() => undefined).row({ key: "c", version: 1, item, live: false }, undefined);
    assert.equal(element.querySelector(".diff")?.textContent, " 9  nine\n10- ten\n10+ TEN\n");
  });
});
