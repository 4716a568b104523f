import { strict as assert } from "node:assert";
import { Drafts, type SavedState } from "../../src/webview/drafts";

describe("part13/3 the drafts of a page", () => {
  let state: SavedState | undefined;
  const api = { getState: () => state, setState: (next: SavedState) => void (state = next) };
  const draft = (text: string) => ({ text, attached: [] });

  beforeEach(() => (state = undefined));

  it("belong to their sessions, which the side bar shows one after the other", () => {
    const first = new Drafts(api, "ses_a");
    assert.equal(first.restore(), undefined);
    first.store(draft("rename the shop"));
    assert.equal(new Drafts(api, "ses_b").restore(), undefined);
    new Drafts(api, "ses_b").store(draft("another"));
    assert.deepEqual(new Drafts(api, "ses_a").restore(), draft("rename the shop"));
    assert.equal(state?.sessionId, "ses_a");
  });

  it("are gone once their input is sent", () => {
    const drafts = new Drafts(api, "ses_a");
    drafts.store(draft("x"));
    drafts.store(draft(""));
    assert.deepEqual(state, { sessionId: "ses_a", drafts: {} });
  });

  it("make room for newer ones", () => {
    for (let n = 0; n < 12; n++) {
      new Drafts(api, `ses_${n}`).store(draft(`${n}`));
    }
    assert.deepEqual(Object.values(state?.drafts ?? {}).map(({ text }) => text), ["2", "3", "4", "5", "6", "7", "8", "9", "10", "11"]);
  });
});
