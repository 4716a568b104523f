import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import { patienceMs } from "../ui/browser";
import { Workbench } from "../ui/workbench";

const images = resolve("../../docs/images");
const wrong = "export function total(prices: number[]): number {\n  let sum = 0;\n  for (let i = 1; i < prices.length; i++) {\n    sum += prices[i];\n  }\n  return sum;\n}\n";
const check = "import { total } from \"./total\";\n\ntest(\"adds every price\", () => {\n  expect(total([1, 2, 3])).toBe(6);\n});\n";

const script = {
  models: ["demo"],
  turns: [
    {
      match: { lastUserContains: "total" },
      replies: [
        { reasoning: "The loop starts at 1.", text: "The loop starts at `1` and skips the first price. I'll fix it and add a test.", toolCalls: [{ name: "edit", args: { path: "total.ts", old: "let i = 1", new: "let i = 0" } }] },
        { toolCalls: [{ name: "write", args: { path: "total.test.ts", content: check } }] },
        { text: "Now I'll run the tests.", toolCalls: [{ name: "shell", args: { command: "npm test -- total" } }] },
        { text: "`total` now adds **all** prices, and a test covers it." },
      ],
    },
  ],
  otherwise: { replies: [{ text: "Done." }] },
};

const plugin = (advice: string) => JSON.stringify({ name: "house-style", version: "1.2.0", description: "Our coding style.", lashd: { prompt: [{ slot: "guidance", content: advice }] } }, undefined, 2);

/** Renews the pictures in docs/images. Run it with FLOWS=pictures scripts/test-editor. */
describe("pictures", function () {
  this.timeout(6 * patienceMs);
  const code = new Workbench();
  const themes = { dark: "Dark Modern", light: "Light Modern" };

  before(async () => {
    code.write("work/total.ts", wrong);
    await code.start(script);
  });
  after(() => code.close());

  const allow = () => code.chat.getByRole("button", { name: "Allow once" }).click();
  const pictures = async (name: string) => {
    for (const [kind, theme] of Object.entries(themes)) {
      await code.run("Preferences: Color Theme");
      await code.page.locator(".quick-input-widget:visible input.input").fill(theme);
      await code.choose(theme);
      await code.page.mouse.move(700, 780); // away from everything with a tooltip
      await settled(code);
      const path = join(images, `vscode-${name}${name && "-"}${kind}.png`);
      await code.page.screenshot({ path });
      if (statSync(path).size > 150_000) {
        throw new Error(`${path} is too large`);
      }
    }
  };

  it("a question in a chat", async () => {
    for (const title of ["Explain the build", "Upgrade the parser", "Rename the settings page"]) {
      const { sessionId } = code.call<{ sessionId: string }>("session/new", { cwd: code.work });
      code.call("session/setTitle", { sessionId, title });
    }
    await code.newSession();
    await code.say("The total of an order is wrong. Fix it, with a test.");
    await allow();
    await code.chat.locator(".toolCall .completed", { hasText: "edit" }).waitFor();
    await allow();
    await code.chat.locator("#asked .card", { hasText: "npm test" }).waitFor();
    await pictures("");
  });

  it("the file changes of a turn", async () => {
    await code.chat.getByRole("button", { name: "Deny", exact: true }).click();
    await code.chat.locator(".row.end", { hasText: "2 files changed" }).hover();
    await code.chat.getByRole("button", { name: "Show changes" }).click();
    await code.page.locator(".monaco-diff-editor .view-line").first().waitFor();
    await pictures("undo");
  });

  it("a changed plugin", async () => {
    await code.run("View: Close All Editors");
    await code.newSession();
    await code.page.locator('.pane-header[aria-label="Plugins and Tools Section"]').click();
    await code.page.locator('.pane-header[aria-label="Sessions Section"]').click();
    const toast = code.page.locator(".notification-toast", { hasText: "Trust the plugin" });
    for (const advice of ["Use whole words in names.", "Use whole words in names. Comment the why."]) {
      code.write("work/.agents/plugins/house-style/plugin.json", plugin(advice));
      await code.page.getByRole("treeitem", { name: /^house-style/ }).filter({ hasText: /untrusted|modified/ }).click({ button: "right" });
      await code.page.locator(".context-view .action-label", { hasText: "Review and Trust" }).click();
      await toast.waitFor();
      if (!advice.includes("why")) {
        await toast.getByRole("button", { name: "Trust" }).click();
        await code.page.getByRole("treeitem", { name: /^house-style/ }).filter({ hasNotText: /untrusted|modified/ }).waitFor();
      }
    }
    await code.page.locator(".monaco-diff-editor .modified .view-line", { hasText: /why/ }).first().waitFor();
    await code.page.getByRole("treeitem", { name: /^Files/ }).locator(".monaco-tl-twistie").click();
    await pictures("plugins");
  });
});

/** settled waits until two screenshots in a row are equal, apart from the time that is left for an answer. */
async function settled({ page, chat }: Workbench): Promise<void> {
  for (let before = "", now = "-"; before !== now; ) {
    before = now;
    await page.waitForTimeout(400);
    now = (await page.screenshot({ mask: [chat.locator(".left")] })).toString("base64");
  }
}
