import { strict as assert } from "node:assert";
import { TerminalFilter } from "../../src/model/terminalFilter";

/** passed returns what a terminal gets of pieces of an output. */
const passed = (...pieces: string[]) => {
  const filter = new TerminalFilter();
  return pieces.map((piece) => filter.pass(piece)).join("");
};

describe("part13 the output of a task in a terminal", () => {
  const read = "52;c;?";
  const hidden = [`\u001b]${read}\u0007`, `\u001b]${read}\u001b\\`, `\u001b]${read}\u009c`, `\u009d${read}\u0007`, `\u001b\u001b]${read}\u0007`, `\u001bP$q"p\u001b\\`, "\u001b_x\u001b\\", "\u001b^x\u001b\\", "\u001bXx\u001b\\", "\u001b]633;E;rm -rf ~\u0007"];
  for (const text of hidden) {
    it(`has no ${JSON.stringify(text)}`, () => {
      assert.equal(passed(`a${text}b`).replace("\u001b\\", ""), "ab");
      assert.equal(passed(..."a", ...text, ..."b").replace("\u001b\\", ""), "ab");
    });
  }

  it("has no string whose beginning has a control character in it, or that follows an unfinished one", () => {
    assert.equal(passed(`a\u001b\n]${read}\u0007b`), "a\nb");
    assert.equal(passed(`a\u001b\u0007]${read}\u0007b`), "a\u0007b");
    assert.equal(passed(`a\u001b\u007f]${read}\u0007b`), "a\u007fb");
    assert.equal(passed(`a\u001b]x\u001b]${read}\u0007b\u001b[1\u001b]${read}\u0007c`), "ab\u001b[1c");
    assert.equal(passed(`a\u001b]${read}`, "more"), "a");
  });

  it("keeps colors, movements of the cursor and other text", () => {
    const text = "\u001b[31mred\u001b[0m\r\n\u001b[2J\u001b[1;2H\u001b(B\u001b7\u{1f388}[x]P^_";
    assert.deepEqual([passed(text), passed(...text)], [text, text]);
  });
});
