import { strict as assert } from "node:assert";
import { argumentAt, argumentSuggestions } from "../../src/model/promptArguments";

const all = [{ name: "file", required: true }, { name: "focus", description: "what to look at" }, { name: "tone" }];

describe("part13/6 arguments of a prompt", () => {
  const at = (line: string) => {
    const typed = argumentAt(line, all);
    return typed && [typed.argument.name, typed.value, line.slice(0, typed.at), typed.others];
  };

  it("are for words in order, and by name", () => {
    assert.deepEqual(at(""), ["file", "", "", {}]);
    assert.deepEqual(at("a"), ["file", "a", "", {}]);
    assert.deepEqual(at("a "), ["focus", "", "a ", { file: "a" }]);
    assert.deepEqual(at("tone="), ["tone", "", "tone=", {}]);
    assert.deepEqual(at("focus=x "), ["file", "", "focus=x ", { focus: "x" }]);
    assert.deepEqual(at("a other=err"), ["focus", "other=err", "a ", { file: "a" }]);
  });

  it("are all words that are left for the last one, and none if each has its value", () => {
    assert.deepEqual(at("a b c d"), ["tone", "c d", "a b ", { file: "a", focus: "b" }]);
    assert.deepEqual(at("a b c "), ["tone", "c ", "a b ", { file: "a", focus: "b" }]);
    assert.deepEqual([at("file=a focus=b tone=c "), at('"tone=x'), argumentAt("x", [])], [undefined, undefined, undefined]);
  });

  it("keep the spaces of quotes", () => {
    assert.deepEqual(at("a 'b c"), ["focus", "b c", "a ", { file: "a" }]);
    assert.deepEqual(at("file=x tone='y z"), ["tone", "y z", "file=x tone=", { file: "x" }]);
    assert.deepEqual(at('"4 7" '), ["focus", "", '"4 7" ', { file: "4 7" }]);
  });

  it("are suggested as one word, in place of what is typed of the value", () => {
    const suggested = (line: string, values: string[]) => {
      const typed = argumentAt(line, all);
      return typed && argumentSuggestions(line, typed, all, values).map(({ label, detail, insert, replaces }) => [label, detail, insert, replaces]);
    };
    assert.deepEqual(suggested("a err", ["error handling", "err"]), [["error handling", "focus \u00b7 what to look at", '"error handling"', 3]]);
    assert.deepEqual(suggested("focus=", ["names"]), [["names", "focus \u00b7 what to look at", "names", 0]]);
    assert.deepEqual(suggested("", ['say "a"', "it's", 'it\'s "a"', "tone=x", "a\nb"]), [['say "a"', "file", "'say \"a\"'", 0], ["it's", "file", '"it\'s"', 0]]);
  });
});
