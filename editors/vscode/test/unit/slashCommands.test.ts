import { strict as assert } from "node:assert";
import { commandOf, commandSuggestions, operationArgs } from "../../src/model/slashCommands";
import { plainOutput } from "../../src/model/terminalText";
import type { OperationInfo } from "../../src/protocol";

const operation = (name: string, more: Partial<OperationInfo> = {}): OperationInfo => ({ name, plugin: "mine", kind: "command", session: "required", ...more });

describe("part/13 commands of the chat", () => {
  it("are those of the extension and the operations of plugins, without queries", () => {
    const names = (word: string) => commandSuggestions(word, [{ name: "commit", kind: "command", plugin: "p" }, { name: "review", kind: "skill", plugin: "p", description: "Reviews.", argumentHint: "PATH" }], [operation("compile"), operation("complain", { kind: "query" })]).map(({ label }) => label);
    assert.deepEqual(names("com"), ["/compact", "/commit", "/compile"]);
    assert.deepEqual(commandSuggestions("rev", [{ name: "review", kind: "skill", plugin: "p", description: "Reviews.", argumentHint: "PATH" }], []), [{ label: "/review", detail: "PATH \u00b7 Reviews.", icon: "lightbulb", insert: "/review" }]);
    assert.deepEqual(names("xyz"), []);
  });

  it("are at the start of an input", () => {
    assert.deepEqual(["/review src/a.ts\nnow", "/p:commit", "/usr/bin is full", "no /review", "/"].map(commandOf), [{ name: "review", arguments: "src/a.ts\nnow" }, { name: "p:commit", arguments: "" }, undefined, undefined, undefined]);
  });

  it("take JSON, or the value of the only text argument", () => {
    const one = operation("note", { inputSchema: { properties: { text: { type: "string" }, times: { type: "integer" } } } });
    assert.deepEqual([operationArgs(one, "hello there"), operationArgs(one, '{"times":2}'), operationArgs(one, "")], [{ text: "hello there" }, { times: 2 }, {}]);
    assert.throws(() => operationArgs(operation("x"), "hello"), /takes its arguments as a JSON object/);
  });
});

describe("part/13 the output of a terminal", () => {
  it("is text, without colors and with the last state of a line", () => {
    assert.equal(plainOutput("\u001b]633;C\u0007\u001b[1;31mFAIL\u001b[0m a\r\n 10%\r 50%\r100%\r\ndone\r\n"), "FAIL a\n100%\ndone");
  });

  it("keeps its end if it is long", () => {
    const text = plainOutput(`${"x".repeat(40_000)}end`);
    assert.deepEqual([text.length, text.endsWith("xend")], [32_001, true]);
  });
});
