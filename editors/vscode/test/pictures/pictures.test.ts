import { join } from "node:path";
import { patienceMs } from "../ui/browser";
import { titleButton } from "../ui/diffEditor";
import { Workbench } from "../ui/workbench";
import { Camera, images, plain } from "./camera";

const wrong = "export function total(prices: number[]): number {\n  let sum = 0;\n  for (let i = 1; i < prices.length; i++) {\n    sum += prices[i];\n  }\n  return sum;\n}\n";
const check = "import { total } from \"./total\";\n\ntest(\"adds every price\", () => {\n  expect(total([1, 2, 3])).toBe(6);\n});\n";

const script = {
  models: ["demo"],
  turns: [
    { match: { lastUserContains: "Request: read it from the environment" }, replies: [{ text: "export const discount = env.DISCOUNT;" }] },
    { match: { lastUserContains: "slowly" }, replies: [{ text: "The prices are one, two, three, four, five, six, seven, eight, nine, ten, eleven and twelve. ".repeat(8), chunkSize: 3, delayMs: 60 }] },
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
  const camera = new Camera(code);

  before(async () => {
    code.write("work/total.ts", wrong);
    code.write("work/cart/discount.ts", "export const discount = 0.1;\n");
    await code.start(script, { settings: plain });
    await camera.dark();
  });
  after(() => code.close());

  const allow = () => code.chat.getByRole("button", { name: "Allow once" }).click();
  const field = () => code.chat.locator("#composer textarea");

  it("a question in a chat", async () => {
    for (const title of ["Explain the build", "Upgrade the parser", "Rename the settings page"]) {
      const { sessionId } = code.call<{ sessionId: string }>("session/new", { cwd: code.work });
      code.call("session/setTitle", { sessionId, title });
    }
    await code.newSession();
    await camera.both("new", "new-light");
    await field().pressSequentially("Why is @to");
    await code.chat.getByRole("option", { name: /^total\.ts/ }).waitFor();
    await camera.picture("mention");
    await field().fill("");
    await field().pressSequentially("/");
    await code.chat.getByRole("option", { name: /^\/compact/ }).waitFor();
    await camera.picture("commands");
    await field().fill("");
    await code.say("The total of an order is wrong. Fix it, with a test.");
    await code.chat.locator("#asked .card", { hasText: "total.ts" }).waitFor();
    await camera.both("changes", "changes-light");
    await allow();
    await code.chat.locator(".toolCall .completed", { hasText: "Edited" }).waitFor();
    await allow();
    await code.chat.locator("#asked .card", { hasText: "npm test" }).waitFor();
    await camera.both("dark", "light");
  });

  it("the file changes of a turn", async () => {
    await code.chat.getByRole("button", { name: "Deny", exact: true }).click();
    await code.chat.locator(".row.end", { hasText: "2 files changed" }).hover();
    await code.chat.getByRole("button", { name: "Show changes" }).click();
    await code.page.locator(".monaco-diff-editor .view-line").first().waitFor();
    await camera.both("undo-dark", "undo-light");
  });

  it("a chat in the side bar, and the modes", async () => {
    await code.run("View: Close All Editors");
    await code.run("lashd: Find Session...");
    await code.quickInput.fill("Fix it");
    await code.page.locator(".quick-input-list .monaco-list-row", { hasText: "with a test" }).first().click();
    await code.chat.locator(".row.end").waitFor();
    await code.run("lashd: Open Chat in Side Bar");
    await code.chat.locator(".row.end").waitFor();
    await code.page.keyboard.press("Control+p");
    await code.page.locator(".quick-input-widget:visible input.input").fill("total.ts");
    await code.choose("total.ts");
    await camera.both("side-bar", "side-bar-light");
    await code.run("lashd: Choose Approval Mode...");
    await code.page.locator(".quick-input-list .monaco-list-row", { hasText: "Edit without asking" }).waitFor();
    await camera.picture("modes");
    await code.page.keyboard.press("Escape");
    await code.run("lashd: Open Chat in Editor Area");
    await code.page.locator(".tab", { hasText: "The total of an order" }).waitFor();
    await code.page.keyboard.press("Control+Alt+b"); // close the side bar
  });

  it("a queue, and the search for a session", async () => {
    await code.run("View: Close All Editors");
    await code.newSession();
    await code.say("Count the prices slowly.");
    await code.chat.locator(".agentMessage", { hasText: "one" }).waitFor();
    await code.say("Then update the changelog.");
    await field().fill("Count only those of this year.");
    await field().press("Control+Enter");
    await code.chat.locator(".queued").nth(1).waitFor();
    await code.page.screenshot({ path: join(images, "vscode-queue.png") }); // the answer grows
    await code.chat.getByRole("button", { name: "Stop" }).click();
    await code.chat.locator(".row.end", { hasText: "Stopped." }).waitFor();
    await code.run("View: Close All Editors"); // the page of a chat can take the focus from the list
    await code.run("lashd: Find Session...");
    await code.page.locator(".quick-input-widget:visible input.input").fill("prices");
    await code.page.locator(".quick-input-list .monaco-list-row", { hasText: "covers it" }).waitFor();
    await camera.picture("find");
    await code.page.keyboard.press("Escape");
  });

  it("an edit of a selection", async () => {
    await code.run("View: Close All Editors");
    await code.page.keyboard.press("Control+p");
    await code.page.locator(".quick-input-widget:visible input.input").fill("discount.ts");
    await code.choose("discount.ts");
    await code.page.locator(".monaco-editor .view-line", { hasText: "discount" }).click();
    await code.page.keyboard.press("Home");
    await code.page.keyboard.press("Shift+End");
    await code.page.keyboard.press("Control+Alt+i");
    await code.page.locator(".quick-input-widget:visible input.input").fill("read it from the environment");
    await code.page.keyboard.press("Enter");
    await titleButton(code.page, "Apply Edit").waitFor();
    await code.page.locator(".monaco-diff-editor .modified .view-line", { hasText: "env.DISCOUNT" }).waitFor();
    await camera.picture("edit");
    await titleButton(code.page, "Discard Edit").click();
  });

  it("a changed plugin", async () => {
    await code.run("View: Close All Editors");
    await code.newSession();
    await code.page.locator('.pane-header[aria-label="Plugins and Tools Section"]').click();
    await code.page.locator('.pane-header[aria-label="Sessions Section"]').click();
    const trust = titleButton(code.page, "Trust These Files");
    for (const advice of ["Use tabs.", "Use tabs. Say why."]) {
      code.write("work/.agents/plugins/house-style/plugin.json", plugin(advice));
      await code.menu(code.page.getByRole("treeitem", { name: /^house-style/ }).filter({ hasText: /not approved/ }), "Review and Trust");
      await trust.waitFor();
      if (!advice.includes("why")) {
        await trust.click();
        await code.page.getByRole("treeitem", { name: /^house-style/ }).filter({ hasNotText: /not approved/ }).waitFor();
      }
    }
    await code.page.locator(".monaco-diff-editor .modified .view-line", { hasText: /why/ }).first().waitFor();
    await code.page.getByRole("treeitem", { name: /^Files/ }).locator(".monaco-tl-twistie").click();
    await camera.both("plugins-dark", "plugins-light");
  });
});
