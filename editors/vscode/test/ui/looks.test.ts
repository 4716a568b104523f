import { strict as assert } from "node:assert";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { Highlighter } from "../../src/chat/highlighter";
import { violations } from "./axe";
import { chatPage } from "./chatPage";
import { unreadable } from "./contrast";
import { commandQuestion, conversation, editQuestion, empty, recent } from "./gallery";
import { codeColors, setTheme, themes, type Theme } from "./themes";

const load = (grammar: string) => (createRequire(resolve("dist"))(resolve(join("dist", "grammars", `${grammar}.js`))) as { default: never[] }).default;

describe("part/13 the looks of a chat", function () {
  const chat = chatPage(this, 4);
  const { tell, asked } = chat;

  /** colorCode answers the requests of the page for colors, as the extension does. */
  const highlighter = new Highlighter(load, codeColors("Dark Modern"));
  const colorCode = async (theme: Theme) => {
    highlighter.setTheme(codeColors(theme));
    for (const { id, language, code } of await asked("highlight")) {
      await tell({ type: "highlighted", id, lines: highlighter.tokens(language, code) });
    }
  };

  const scenes: Record<string, () => Promise<void>> = {
    conversation: async () => {
      await tell(conversation());
      await chat.page.locator(".plan summary").click();
      await chat.page.getByRole("button", { name: /^Context \d/ }).click();
      await tell({ type: "context", parts: [{ title: "Tools", detail: "12 tools", tokens: 3000 }, { title: "History", detail: "8 messages", tokens: 4000 }], incomplete: false });
    },
    "command and suggestions": async () => {
      await tell(conversation([commandQuestion, editQuestion]));
      await chat.page.locator(".card").first().getByRole("button", { name: "More\u2026" }).click();
      await chat.page.locator("#composer textarea").pressSequentially("@to");
      await tell({ type: "suggestions", id: (await asked("suggest")).at(-1)?.id ?? 0, suggestions: [{ label: "total.ts", detail: "src/order/total.ts", icon: "file" }, { label: "problems", detail: "errors and warnings of the editor", icon: "warning" }] });
    },
    compaction: async () => {
      await tell(conversation([]));
      await tell({ type: "compaction", instructions: "", preview: { compacts: true, tokens: 41_000, tokensAfter: 9000, keeps: 20_000, summarized: { messages: 30, tokens: 32_000, inputs: ["The total of an order is wrong, and nobody knows since when. Fix it, with a test."], moreInputs: 7 }, kept: { messages: 4, tokens: 9000, inputs: ["Use reduce."] } } });
    },
    "new chat": async () => {
      await tell(empty);
      await tell(recent);
    },
  };

  const shot = async (name: string) => {
    if (process.env.SHOTS) {
      await chat.page.screenshot({ path: join(process.env.SHOTS, `${name.replaceAll(/[^a-z0-9]+/gi, "-")}.png`) });
    }
  };

  for (const theme of Object.keys(themes) as Theme[]) {
    for (const [scene, show] of Object.entries(scenes)) {
      it(`${scene}: every text has the contrast of WCAG AA, and axe finds no violation, in ${theme}`, async () => {
        await setTheme(chat.page, theme);
        await chat.page.setViewportSize({ width: 1200, height: 2600 });
        await show();
        await colorCode(theme);
        assert.deepEqual(await unreadable(chat.page.locator("body")), []);
        assert.deepEqual(await violations(chat.page.mainFrame()), []);
        await shot(`${scene} ${theme} 1200`);
      });
    }

    it(`nothing is wider than 300 pixels, and the input is whole however much is above it, in ${theme}`, async () => {
      await setTheme(chat.page, theme);
      await chat.page.setViewportSize({ width: 300, height: 900 });
      for (const [scene, show] of Object.entries(scenes)) {
        await chat.page.locator("#composer textarea").fill("");
        await show();
        await colorCode(theme);
        const wide = await chat.page.evaluate(() => [...document.querySelectorAll<HTMLElement>("body *")].filter((e) => e.getClientRects().length > 0 && e.getBoundingClientRect().right > 301 && !e.closest("pre, table")).map((e) => `${e.tagName}.${e.className}: ${e.textContent?.slice(0, 40)}`));
        assert.deepEqual(wide, [], scene);
        const tall = await chat.page.locator(".call b").evaluateAll((all) => all.filter((b) => b.getBoundingClientRect().height > 30).map((b) => b.textContent));
        assert.deepEqual(tall, [], "names of tools on several lines");
        for (const height of [900, 560]) {
          await chat.page.setViewportSize({ width: 300, height });
          assert.equal(await chat.page.locator("#composer").evaluate((e) => Math.round(e.getBoundingClientRect().bottom - innerHeight)), 0, `${scene}, ${height} pixels high`);
        }
        await chat.page.setViewportSize({ width: 300, height: 900 });
        await shot(`${scene} ${theme} 300`);
      }
    });
  }

  it("changed lines have a border in high contrast, as in VS Code's diff editor, and none else", async () => {
    const borders: Record<string, string[]> = {};
    for (const theme of Object.keys(themes) as Theme[]) {
      await setTheme(chat.page, theme);
      await tell(conversation());
      borders[theme] = await Promise.all([".added", ".removed"].map((line) => chat.page.locator(`.diff ${line}`).first().evaluate((e) => `${getComputedStyle(e).outlineStyle} ${getComputedStyle(e).outlineColor}`)));
    }
    const none = ["dashed rgba(0, 0, 0, 0)", "dashed rgba(0, 0, 0, 0)"];
    assert.deepEqual(borders, {
      "Dark Modern": none, "Light Modern": none,
      "Dark High Contrast": ["dashed rgb(51, 255, 46)", "dashed rgb(255, 0, 143)"], "Light High Contrast": ["dashed rgb(55, 78, 6)", "dashed rgb(173, 7, 7)"],
    });
  });

  it("a text that cannot be read is found", async () => {
    await setTheme(chat.page, "Dark Modern");
    await tell(conversation());
    await chat.page.addStyleTag({ content: ".userMessage .bubble .text { color: var(--vscode-input-background) !important; } .mark { opacity: 0.3; }" });
    const bad = (await unreadable(chat.page.locator("body"))).map(({ text }) => text);
    assert.deepEqual(bad.filter((text) => /Use reduce|The model changed/.test(text)), ["Use reduce.", "The model changed."]);
  });
});
