import { strict as assert } from "node:assert";
import type { Suggestion } from "../../src/chat/messages";
import { chatPage } from "./chatPage";

describe("part/13 commands in the input of a chat", function () {
  const chat = chatPage(this);
  const { tell, reset, asked } = chat;
  beforeEach(() => reset());
  const field = () => chat.page.locator("#composer textarea");

  it("part/13 says that there is no such command, and sends it as text only if the user wants that", async () => {
    await field().fill("/gre Bob");
    await field().press("Enter");
    await tell({ type: "sent", ok: false });
    await tell({ type: "unknown", name: "gre", near: "notes:greet" });
    await chat.page.getByRole("alert").filter({ hasText: "There is no command /gre." }).waitFor();
    await chat.page.getByRole("button", { name: "Use /notes:greet" }).click();
    assert.deepEqual([await field().inputValue(), await chat.page.getByRole("button", { name: "Send as text" }).count()], ["/notes:greet Bob", 0]);
    await field().fill("/tmp is full");
    await field().press("Enter");
    await tell({ type: "sent", ok: false });
    await tell({ type: "unknown", name: "tmp" });
    await chat.page.getByRole("button", { name: "Send as text" }).click();
    const sent = (await asked("send")) as { text: string; asText?: boolean }[];
    assert.deepEqual(sent.map(({ text, asText }) => [text, asText]), [["/gre Bob", undefined], ["/tmp is full", undefined], ["/tmp is full", true]]);
  });

  it("part/13 shows what a command does beside its name, and its arguments after that", async () => {
    await field().pressSequentially("/in");
    const request = (await asked("suggest")).at(-1) as { id: number };
    await tell({ type: "suggestions", id: request.id, suggestions: [{ label: "/init", detail: "Writes AGENTS.md.", hint: "[FOCUS]", icon: "terminal", insert: "/init" }] });
    const option = chat.page.getByRole("option", { name: "/init" });
    const [name, about, hint] = await Promise.all([".name", "small", ".hint"].map((part) => option.locator(part).boundingBox()));
    assert.ok(name && about && hint);
    assert.ok(about.x - name.x < 160, `the description begins ${about.x - name.x} pixels behind the name`);
    assert.ok(hint.x > about.x + about.width);
  });

  it("part/13 says that nothing matches a mention, until the word changes", async () => {
    const answer = async (suggestions: Suggestion[], last?: boolean) => tell({ type: "suggestions", id: ((await asked("suggest")).at(-1) as { id: number }).id, suggestions, ...(last && { last }) });
    const none = chat.page.getByText("No file, symbol or resource matches.");
    await field().pressSequentially("see @tot");
    await answer([]);
    assert.equal(await none.isVisible(), false, "while more answers can follow");
    await answer([], true);
    await none.waitFor();
    await field().press("a");
    await answer([{ label: "total.ts", detail: "src/total.ts", icon: "file", insert: "@src/total.ts" }], true);
    await chat.page.getByRole("option", { name: "total.ts" }).waitFor();
    assert.equal(await none.isVisible(), false);
    await answer([], true);
    await field().press("Space");
    await none.waitFor({ state: "hidden" });
  });

  it("part/13 opens what fills the context window for a command", async () => {
    await tell({ type: "context", parts: [{ title: "History", detail: "one message", tokens: 12 }], incomplete: false, open: true });
    await chat.page.locator("#context", { hasText: "History" }).waitFor();
  });
});
