import { strict as assert } from "node:assert";
import { quotedOf, selectedLines, toInput } from "../../src/model/input";

describe("part15 attached texts of an input", () => {
  it("26 are named by the lines of which some text is selected", () => {
    const lines = (start: number, end: number, character: number) => selectedLines({ start: { line: start }, end: { line: end, character } });
    assert.deepEqual([lines(0, 3, 0), lines(0, 2, 4), lines(4, 4, 3), lines(4, 5, 0)], ["1-3", "1-3", "5", "5"]);
  });

  it("64 of a terminal, of problems and of a folder do not say that they are files", () => {
    const attached = [{ kind: "terminal", label: "npm test" }, { kind: "problems", label: "problems" }, { kind: "folder", label: "src/" }] as const;
    const texts = toInput("", attached.map((one) => ({ ...one, text: "x" }))).map(({ text = "" }) => text);
    assert.deepEqual(texts.map((text) => text.split("\n")[0]), ["Terminal output: npm test", "Problems of the editor: problems", "Files of the folder: src/"]);
    assert.deepEqual(texts.map(quotedOf), attached.map((one) => ({ ...one, text: "x" })));
    assert.equal(quotedOf("Reason: npm test\n```\nx\n```\n"), undefined);
  });

  it("25 are recognized with their name and text, and other texts are not", () => {
    const [named, fenced] = toInput("", [{ label: "a b.ts", text: "" }, { label: "c.md:1-2", text: "```js\nx\n```" }]);
    assert.deepEqual(quotedOf(named?.text ?? ""), { label: "a b.ts", text: "" });
    assert.deepEqual(quotedOf(fenced?.text ?? ""), { label: "c.md:1-2", text: "```js\nx\n```" });
    assert.equal(quotedOf("File: a.ts\nis wrong"), undefined);
    assert.equal(quotedOf("look at\nFile: a.ts\n"), undefined);
  });
});
