import { strict as assert } from "node:assert";
import { readFileSync } from "node:fs";
import { commandOf, commandSuggestions, operationArgs, ownCommand, ownNames, startWith } from "../../src/model/slashCommands";
import { commandText, plainOutput } from "../../src/model/terminalText";
import type { OperationInfo } from "../../src/protocol";

const operation = (name: string, more: Partial<OperationInfo> = {}): OperationInfo => ({ name, plugin: "mine", kind: "command", session: "required", ...more });

/** shared are the commands of this extension and of lash chat, and examples of their completion. */
const shared = JSON.parse(readFileSync("../../cmd/lash/chat/testdata/commands.json", "utf8")) as { both: string[][]; editor: string[]; matches: { names: string[]; typed: string; want: string[] }[] };

describe("part/13 commands of the chat", () => {
  it("have the names of those of lash chat", () => {
    assert.deepEqual(ownNames().flat().sort(), [...shared.both.flat(), ...shared.editor].sort());
    for (const names of shared.both) {
      assert.equal(new Set(names.map(ownCommand)).size, 1, names.join());
    }
  });

  it("are completed as in lash chat", () => {
    for (const { names, typed, want } of shared.matches) {
      const found = commandSuggestions(typed, names.map((name) => ({ name, kind: "command", plugin: "p" })), []).filter(({ insert }) => insert !== undefined);
      assert.deepEqual(found.map(({ label }) => label.slice(1)), want, typed);
    }
  });

  it("are those of the extension and the operations of plugins, without queries", () => {
    const names = (word: string) => commandSuggestions(word, [{ name: "commit", kind: "command", plugin: "p" }, { name: "review", kind: "skill", plugin: "p", description: "Reviews.", argumentHint: "PATH" }], [operation("compile"), operation("complain", { kind: "query" })]).map(({ label }) => label);
    assert.deepEqual(names("com"), ["/compact", "/commit", "/compile"]);
    assert.deepEqual(commandSuggestions("revi", [{ name: "review", kind: "skill", plugin: "p", description: "Reviews.", argumentHint: "PATH" }], []), [{ label: "/review", detail: "Reviews.", hint: "PATH", icon: "lightbulb", insert: "/review" }]);
    assert.deepEqual(names("xyz"), []);
  });

  it("are at the start of an input", () => {
    assert.deepEqual(["/review src/a.ts\nnow", "/p:commit", "/usr/bin is full", "no /review", "/"].map(commandOf), [{ name: "review", arguments: "src/a.ts\nnow" }, { name: "p:commit", arguments: "" }, undefined, undefined, undefined]);
  });

  it("part13/vscode cannot lose their names to files of a workspace or to plugins", () => {
    const kindOf = (name: string) => startWith({ name, arguments: "x" }, [{ name: "undo", kind: "command", plugin: ".claude" }, { name: "clear", kind: "skill", plugin: ".claude" }, { name: "review", kind: "command", plugin: ".claude" }], [operation("undo"), operation("review"), operation("compile"), operation("ask", { kind: "query" })]).kind;
    assert.deepEqual(["undo", "clear", "review", "compile", "ask"].map(kindOf), ["own", "own", "sent", "operation", "unknown"]);
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

  it("says that an empty output may not be all", () => {
    assert.deepEqual([commandText("ls", "a\nb"), commandText("true", "")], ["$ ls\na\nb", "$ true\n(no output, or VS Code did not pass it on)"]);
  });

  it("keeps its end if it is long", () => {
    const text = plainOutput(`${"x".repeat(40_000)}end`);
    assert.deepEqual([text.length, text.endsWith("xend")], [32_001, true]);
  });
});
