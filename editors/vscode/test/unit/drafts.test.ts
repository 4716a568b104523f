import { strict as assert } from "node:assert";
import { newestInput, wasSent, type Draft } from "../../src/model/draft";
import { snapshot, type SessionView } from "../../src/model/session";
import type { Item } from "../../src/protocol";
import { Drafts, type SavedState } from "../../src/webview/drafts";
import { attached } from "./turn";

describe("part13/vscode a draft that VS Code stored too early", () => {
  const user = (inputId: string, ...parts: Pick<Item, "text" | "attachment">[]): Item[] => parts.map((part, at) => ({ itemId: `${inputId}:${at}`, kind: "userMessage", status: "completed", atMs: 1, origin: { kind: "turnInput", inputId }, ...part }));
  const view = (more: Partial<SessionView>): SessionView => ({ ...snapshot(attached), ...more });
  const first = user("inp_1", { text: "go on" });
  const chip = { label: "total.ts:7-10", text: "sum()" };
  const second = user("inp_2", { text: "File: total.ts:7-10\n```\nsum()\n```\n" }, { text: "What does this do?" });

  for (const [name, draft, shown, sent] of [
    ["is the whole of an input that was sent", { text: "What does this do?", attached: [chip], seen: "inp_1" }, { items: [...first, ...second] }, true],
    ["is the beginning of one", { text: "What does this ", attached: [chip], seen: "inp_1" }, { items: [...first, ...second] }, true],
    ["is the first input of its session", { text: "go", attached: [] }, { items: first }, true],
    ["waits in the queue", { text: "then test", attached: [], seen: "inp_1" }, { items: first, queue: [{ inputId: "inp_3", turnId: "trn_3", state: "queued", atMs: 1, input: [{ type: "text", text: "then test it" }] }] }, true],
    ["runs", { text: "then", attached: [], seen: "inp_1" }, { items: first, accepted: { trn_3: { inputId: "inp_3", input: [{ type: "text", text: "then test it" }] } } }, true],
    ["has an attachment that was not sent", { text: "What", attached: [{ ...chip, text: "other" }], seen: "inp_1" }, { items: [...first, ...second] }, false],
    ["has a file that was not sent", { text: "What", attached: [{ label: "a.png", text: "", file: { id: 1, type: "image/png", size: 1, digest: "sha256:1" } }], seen: "inp_1" }, { items: [...first, ...second] }, false],
    ["is another text", { text: "What is this", attached: [chip], seen: "inp_1" }, { items: [...first, ...second] }, false],
    ["was typed after the same input", { text: "go", attached: [], seen: "inp_1" }, { items: first }, false],
    ["was typed after an input that was undone", { text: "go", attached: [], seen: "inp_2" }, { items: first }, false],
    ["was typed into a session without inputs", { text: "go", attached: [] }, { items: [] }, false],
  ] as [string, Draft, Partial<SessionView>, boolean][]) {
    it(`is ${sent ? "dropped" : "kept"} if it ${name}`, () => assert.equal(wasSent(draft, view(shown)), sent));
  }

  it("keeps the input that was the newest one when it was typed", () => {
    let state: SavedState | undefined;
    const drafts = new Drafts({ getState: () => state, setState: (next) => void (state = next) }, "ses_1");
    drafts.store({ text: "go", attached: [chip] }, () => newestInput(view({ items: first })));
    drafts.store({ text: "go", attached: [chip] }, () => newestInput(view({ items: [...first, ...second] })));
    assert.equal(drafts.saved?.seen, "inp_1");
    drafts.store({ text: "go", attached: [] }, () => newestInput(view({ items: [...first, ...second] })));
    assert.equal(drafts.saved?.seen, "inp_2");
  });
});

describe("part13/3 the drafts of a page", () => {
  let state: SavedState | undefined;
  const api = { getState: () => state, setState: (next: SavedState) => void (state = next) };
  const draft = (text: string) => ({ text, attached: [] });
  const none = () => undefined;

  beforeEach(() => (state = undefined));

  it("belong to their sessions, which the side bar shows one after the other", () => {
    const first = new Drafts(api, "ses_a");
    assert.equal(first.restore(), undefined);
    first.store(draft("rename the shop"), none);
    assert.equal(new Drafts(api, "ses_b").restore(), undefined);
    new Drafts(api, "ses_b").store(draft("another"), none);
    assert.deepEqual(new Drafts(api, "ses_a").restore(), { ...draft("rename the shop"), seen: undefined });
    assert.equal(state?.sessionId, "ses_a");
  });

  it("are gone once their input is sent", () => {
    const drafts = new Drafts(api, "ses_a");
    drafts.store(draft("x"), none);
    drafts.store(draft(""), none);
    assert.deepEqual(state, { sessionId: "ses_a", drafts: {} });
  });

  it("make room for newer ones", () => {
    for (let n = 0; n < 12; n++) {
      new Drafts(api, `ses_${n}`).store(draft(`${n}`), none);
    }
    assert.deepEqual(Object.values(state?.drafts ?? {}).map(({ text }) => text), ["2", "3", "4", "5", "6", "7", "8", "9", "10", "11"]);
  });
});
