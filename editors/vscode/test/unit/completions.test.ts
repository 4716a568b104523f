import { strict as assert } from "node:assert";
import { commitPrompt, describedDiff, plainReply } from "../../src/model/commitMessage";
import { editPrompt, replacementOf } from "../../src/model/inlineEdit";

describe("part/13 a commit message", () => {
  it("is asked for with the staged diff and the style of earlier commits", () => {
    const prompt = commitPrompt("+new line", ["api: add a limit", "docs: say it"]);
    assert.match(prompt, /earlier commits:\napi: add a limit\ndocs: say it\n\nChanges:\n\+new line$/);
    assert.deepEqual([describedDiff("+staged", "+other"), describedDiff(" \n", "+other"), describedDiff("", "\n")], ["+staged", "+other", undefined]);
    assert.ok(!commitPrompt("x", []).includes("Subjects of earlier commits"));
    assert.match(commitPrompt("y".repeat(70_000), []), /y\n\(the rest of the diff is cut\)$/);
  });

  it("has no code fence", () => {
    assert.deepEqual(["```text\napi: x\n\nwhy\n```", "  api: x\n"].map(plainReply), ["api: x\n\nwhy", "api: x"]);
  });
});

describe("part/13 an edit of a selection", () => {
  it("is asked for with what is around it", () => {
    const prompt = editPrompt({ path: "a.ts", language: "typescript", before: "let a;\n", selected: "let b;", after: "\nlet c;", wish: "make it const" });
    assert.match(prompt, /Request: make it const\n\nlet a;\n<selection>let b;<\/selection>\nlet c;$/);
  });

  it("ends like the selected text, and has no fence or marks", () => {
    assert.equal(replacementOf("```ts\n  const b;\n```", "let b;\n"), "  const b;\n");
    assert.equal(replacementOf("const b;\n\n", "let b;"), "const b;");
    assert.equal(replacementOf("<selection>const b;</selection>", "let b;"), "const b;");
  });
});
