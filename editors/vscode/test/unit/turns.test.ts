import { strict as assert } from "node:assert";
import { toInput } from "../../src/model/input";
import { turnsOf, undoQuestion } from "../../src/model/turns";
import type { Item } from "../../src/protocol";

describe("part/13 turns of a conversation", () => {
  it("part13/26 are undone with later turns only if there are some", () => {
    const item = (turnId: string): Item => ({ itemId: `${turnId}:0`, kind: "userMessage", status: "completed", atMs: 1, turnId, text: "hi" });
    const items = [item("trn_1"), item("trn_2")];
    assert.deepEqual(["trn_1", "trn_2"].map((id) => undoQuestion(items, id)), ["Undo this turn and all later turns", "Undo this turn"]);
  });

  it("are newest first, with what the user wrote", () => {
    const item = (turnId: string, text: string, more: Partial<Item> = {}): Item => ({ itemId: `${turnId}:0`, kind: "userMessage", status: "completed", atMs: 1, turnId, text, ...more });
    const [file] = toInput("", [{ label: "a.ts", text: "x" }]);
    const items = [
      item("trn_1", file?.text ?? ""), item("trn_1", "first\nline"), item("trn_1", "steered"), item("trn_1", "an answer", { kind: "agentMessage" }),
      item("trn_2", "added", { origin: { kind: "plugin" } }), item("trn_2", "second"),
      item("trn_3", "", { attachment: { name: "shot.png", type: "image/png" } }),
    ];
    assert.deepEqual(turnsOf(items), [{ turnId: "trn_3", input: "shot.png" }, { turnId: "trn_2", input: "second" }, { turnId: "trn_1", input: "first\nline" }]);
  });
});
