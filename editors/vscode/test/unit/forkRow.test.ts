import { strict as assert } from "node:assert";
import { reduce, snapshot } from "../../src/model/session";
import { rowsOf } from "../../src/webview/rows";
import { attached, turn } from "./turn";

describe("part15 rows of a fork", () => {
  it("29 say where the history of a fork begins to be its own", () => {
    const view = reduce(snapshot(attached), turn);
    const keys = (node: string) => rowsOf({ ...view, session: { ...view.session, relation: { kind: "fork", source: { sessionId: "ses_0", node } } } }).map((row) => row.key).slice(1);
    assert.deepEqual([keys("nod_b"), keys("nod_a")], [["nod_a:0", "nod_a:1", "nod_b:0", "end:trn_1", "fork"], ["nod_a:0", "nod_a:1", "fork", "nod_b:0", "end:trn_1"]]);
  });
});
