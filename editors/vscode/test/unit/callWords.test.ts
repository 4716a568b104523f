import { strict as assert } from "node:assert";
import { callWords, looksText, question, subjectText, type Made, type Tense } from "../../src/model/callWords";
import type { Task } from "../../src/protocol";

const server = { taskId: "tsk_1", spec: { label: "the server" } } as Task;
const known = { cwd: "/work", tasks: [server] };
const change = (diff: string) => ({ status: "success" as const, change: { path: "src/a.ts", added: 1, removed: 0, diff } });
const said = (call: Made, tense: Tense = "past") => {
  const { verb, about, rest } = callWords(call, tense, known);
  return [verb, subjectText(about), rest].filter(Boolean).join(" ");
};

describe("part13/61 the words about calls", () => {
  it("say what was done, what runs and what would be done", () => {
    const call = { tool: "shell", args: { command: "npm test" } };
    assert.deepEqual((["past", "present", "plain"] as const).map((tense) => said(call, tense)), ["Ran npm test", "Running npm test", "Run npm test"]);
  });

  it("name files in the workspace without it, and the place of a search", () => {
    assert.equal(said({ tool: "read", args: { path: "/work/src/a.ts" } }), "Read src/a.ts");
    assert.equal(said({ tool: "read", args: { path: "/other/a.ts" } }), "Read /other/a.ts");
    assert.equal(said({ tool: "grep", args: { pattern: "total", path: "/work/src" } }), "Searched for total in src");
    assert.equal(said({ tool: "glob", args: { pattern: "*.ts" } }), "Searched for files *.ts");
    assert.equal(said({ tool: "list", args: {} }), "Listed the workspace");
  });

  it("say whether a file was created, changed or deleted, and how many files a patch changes", () => {
    const patch = (...files: string[]) => ({ patch: `*** Begin Patch\n${files.map((file) => `*** Update File: ${file}\n`).join("")}*** End Patch` });
    assert.equal(said({ tool: "write", args: { path: "src/a.ts" }, output: change("--- /dev/null\n+++ b/src/a.ts\n@@ -0,0 +1 @@\n+x\n") }), "Created src/a.ts");
    assert.equal(said({ tool: "patch", args: patch("src/a.ts"), output: change("--- a/src/a.ts\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n") }), "Deleted src/a.ts");
    assert.equal(said({ tool: "edit", args: { path: "src/a.ts" }, output: change("--- a/src/a.ts\n+++ b/src/a.ts\n@@ -1 +1 @@\n-x\n+y\n") }), "Edited src/a.ts");
    assert.equal(said({ tool: "patch", args: patch("a.ts", "b.ts"), output: change("--- /dev/null\n+++ b/a.ts\n") }), "Edited 2 files");
  });

  it("name the task of a call by its label", () => {
    assert.equal(said({ tool: "start_command", args: { command: "npm start", label: "the server" } }), "Started the server");
    assert.equal(said({ tool: "stop_command", args: { task: "tsk_1" } }, "present"), "Stopping the server");
    assert.equal(said({ tool: "read_output", args: { task: "tsk_2" } }), "Read the output of a task");
  });

  it("keep the name of a tool that is not known, and of one whose arguments are others", () => {
    assert.equal(said({ tool: "mcp__docs__look", args: { limit: 3, query: "one\ntwo" } }), "mcp__docs__look one\u2026");
    assert.equal(said({ tool: "read", args: { key: "x" } }), "read x");
    assert.equal(said({ tool: "toString" }), "toString");
  });

  it("count what several calls looked at", () => {
    const read = (path: string) => ({ tool: "read", args: { path } });
    assert.equal(looksText([read("a"), read("b"), read("a"), { tool: "grep", args: { pattern: "x" } }, { tool: "list", args: {} }], known), "Read 2 files, searched 1 time, listed 1 folder");
    assert.equal(looksText([{ tool: "glob", args: { pattern: "x" } }, { tool: "grep", args: { pattern: "x" } }], known), "Searched 2 times");
  });

  it("ask whether a call may be made", () => {
    assert.equal(question({ tool: "read", args: { path: "/work/src/order/total.ts" } }, known), "Read src/order/total.ts?");
    assert.equal(question({ tool: "mcp__docs__look", args: { query: "x" } }, known), "Call the tool mcp__docs__look?");
  });
});
