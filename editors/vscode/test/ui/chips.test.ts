import { strict as assert } from "node:assert";
import { chatPage } from "./chatPage";

describe("part/13 what is around the input of a chat", function () {
  const chat = chatPage(this);
  const { tell, asked } = chat;
  const field = () => chat.page.locator("#composer textarea");

  it("attaches a text once, and takes its mention out of the input with its chip", async () => {
    await chat.reset();
    await field().fill("Compare @src/a.ts with @src/a.tsx and");
    for (const label of ["src/a.ts", "src/a.tsx", "src/a.ts"]) {
      await tell({ type: "attached", attached: { label, text: `text of ${label}` } });
    }
    assert.deepEqual(await chat.page.locator(".chip").allInnerTexts(), ["src/a.ts", "src/a.tsx"]);
    await chat.page.getByRole("button", { name: "Remove src/a.ts", exact: true }).click();
    assert.deepEqual([await field().inputValue(), await chat.page.locator(".chip").allInnerTexts()], ["Compare with @src/a.tsx and", ["src/a.tsx"]]);
  });

  it("closes what fills the context window with Escape, and gives the focus back", async () => {
    await chat.reset();
    await chat.page.locator(".meter").click();
    await chat.page.locator("#context:visible").waitFor();
    await chat.page.keyboard.press("Escape");
    assert.deepEqual([await chat.page.locator("#context").isVisible(), await chat.page.locator(".meter:focus").count(), await asked("stop")], [false, 1, []]);
  });
});
