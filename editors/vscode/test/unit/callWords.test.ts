import { strict as assert } from "node:assert";
import { callWords, isWhole, looksText, question, subjectText, type Made, type Tense } from "../../src/model/callWords";
import type { CallTitle, Task } from "../../src/protocol";
import { titled } from "./titles";

const server = { taskId: "tsk_1", spec: { label: "the server" } } as Task;
const known = { cwd: "/work", tasks: [server] };
const change = (diff: string) => ({ status: "success" as const, change: { path: "src/a.ts", added: 1, removed: 0, diff } });
const call = (tool: string, subject?: string, detail?: string, output?: Made["output"]): Made => ({ tool, title: titled(tool, subject, detail), output });
const said = (made: Made, tense: Tense = "done") => {
  const { verb, about, rest } = callWords(made, tense, known);
  return [verb, subjectText(about), rest].filter(Boolean).join(" ");
};

describe("part13/61 the words about calls", () => {
  it("say what was done, what runs and what would be done", () => {
    assert.deepEqual((["done", "running", "verb"] as const).map((tense) => said(call("shell", "npm test"), tense)), ["Ran npm test", "Running npm test", "Run npm test"]);
  });

  it("name files in the workspace without it, and the place of a search", () => {
    assert.equal(said(call("read", "/work/src/a.ts", "lines 1-9")), "Read src/a.ts lines 1-9");
    assert.equal(said(call("read", "/other/a.ts")), "Read /other/a.ts");
    assert.equal(said(call("grep", "total", "in src")), "Searched for total in src");
    assert.equal(said(call("list", ".")), "Listed the folder");
  });

  it("say whether a file was created, changed or deleted", () => {
    const edited = (detail: string, diff: string) => said(call("patch", "src/a.ts", detail, change(diff)));
    assert.equal(edited("", "--- /dev/null\n+++ b/src/a.ts\n@@ -0,0 +1 @@\n+x\n"), "Created src/a.ts");
    assert.equal(edited("", "--- a/src/a.ts\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"), "Deleted src/a.ts");
    assert.equal(edited("", "--- a/src/a.ts\n+++ b/src/a.ts\n@@ -1 +1 @@\n-x\n+y\n"), "Edited src/a.ts");
    assert.equal(edited("and 1 other file", "--- /dev/null\n+++ b/a.ts\n"), "Edited src/a.ts and 1 other file");
  });

  it("name the task of a call by its label", () => {
    assert.equal(said(call("stop_command", "tsk_1"), "running"), "Stopping command the server");
    assert.equal(said(call("stop_command", "tsk_2")), "Stopped command tsk_2");
  });

  it("name the tools of this extension, and keep the names of others", () => {
    assert.equal(said({ tool: "editor_reveal", args: { line: 3, path: "/work/a.ts" } }), "Showed a.ts");
    assert.equal(said({ tool: "editor_open_files", args: {} }, "running"), "Listing the open files");
    assert.equal(said({ tool: "mcp__docs__look", args: { limit: 3, query: "one\ntwo" } }), "mcp__docs__look one\u2026");
    assert.equal(said({ tool: "toString" }), "toString");
    assert.deepEqual(callWords({ tool: "Read", args: { limit: 9, file_path: "/work/src/a.ts" } }, "done", known).about, { file: "src/a.ts" });
    assert.deepEqual(callWords({ tool: "Read", args: { file_path: "/works/a.ts" } }, "done", known).about, { code: "/works/a.ts" });
    const title: CallTitle = { kind: "other", verb: "Call", running: "Calling", done: "Called", subject: "weather: Weather forecast", detail: "Oslo", foreign: true };
    const forecast = { tool: "mcp__weather__forecast", args: { city: "Oslo" }, title };
    assert.equal(said(forecast), "Called weather: Weather forecast Oslo");
    assert.equal(question(forecast, known), "Call weather: Weather forecast?");
  });

  it("count what several calls looked at", () => {
    assert.equal(looksText([call("read", "a"), call("read", "b"), call("read", "a"), call("grep", "x"), call("list", ".")], known), "Read 2 files, searched 1 time, listed 1 folder");
    assert.equal(looksText([call("grep", "x"), call("grep", "y")], known), "Searched 2 times");
  });

  it("ask whether a call may be made", () => {
    assert.equal(question(call("read", "/work/src/order/total.ts"), known), "Read src/order/total.ts?");
    assert.equal(question({ tool: "mcp__docs__look", args: { query: "x" } }, known), "Call the tool mcp__docs__look?");
  });

  it("have a whole command only if it is one short line", () => {
    const has = (command: string, subject: string) => isWhole({ args: { command }, title: titled("shell", subject) });
    assert.deepEqual([has("npm test", "npm test"), has("npm\ntest", "npm test")], [true, false]);
  });
});
