import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { patienceMs } from "../ui/browser";
import { Goals } from "../ui/goals";
import { Camera, plain } from "./camera";

const script = { models: ["demo"], turns: [], otherwise: { replies: [{ text: "`cart/discount.ts` has the discount of the shop." }] } };

const settings = `model = "anthropic/claude-sonnet-4-6"
approval = "ask"
park_affter = "2h"

[providers.work]
base_url = "https://models.example.com/v1"
`;

/** Renews the pictures of the first steps in docs/images. Run it with FLOWS=pictures scripts/test-editor. */
describe("pictures of the first steps", function () {
  this.timeout(6 * patienceMs);
  const code = new Goals();
  const camera = new Camera(code);

  before(async () => {
    code.write("work/cart/discount.ts", "export const discount = 0.1;\n");
    await code.start(script, { settings: plain });
    await camera.dark();
  });
  after(() => code.close());

  it("the walkthrough", async () => {
    await code.view();
    await code.run("View: Toggle Primary Side Bar Visibility"); // makes room for the text beside a step
    await code.run("Welcome: Open Walkthrough...");
    await code.choose("Get Started with lashd");
    await code.page.locator(".getting-started-step", { hasText: "Try it without a model" }).waitFor();
    await code.chat.getByText("The extension restarts the daemon").waitFor(); // beside the step
    await camera.picture("walkthrough");
  });

  it("a restart that is needed", async () => {
    await code.run("View: Toggle Primary Side Bar Visibility");
    await code.run("View: Close All Editors");
    await code.ask("Where is the discount?");
    await code.answered("has the discount");
    await code.run("lashd: Open config.toml");
    await code.page.locator(".monaco-editor .view-line", { hasText: /^script.=/ }).click();
    await code.page.keyboard.press("Control+Home");
    await code.page.keyboard.insertText('approval = "deny"\n');
    await code.page.keyboard.press("Control+s");
    await code.toast("Restart the daemon").waitFor();
    await code.page.keyboard.press("Control+w");
    await code.answered("has the discount");
    await code.page.locator("#lash\\.lashd\\.lashd\\.status", { hasText: "lashd: restart needed" }).waitFor();
    await camera.picture("restart");
    await code.toast("Restart the daemon").getByRole("button", { name: "Restart Daemon" }).click();
    await code.status("check").waitFor();
  });

  it("config.toml in an editor", async () => {
    const file = join(code.home, "config.toml");
    const before = readFileSync(file);
    await code.run("View: Close All Editors");
    await code.run("lashd: Open config.toml");
    await code.page.locator(".monaco-editor .view-line", { hasText: /^script.=/ }).click();
    await code.page.keyboard.press("Control+a");
    await code.page.keyboard.insertText(settings);
    await code.page.locator(".monaco-editor .squiggly-error").first().waitFor();
    await code.page.keyboard.press("Control+Space");
    await code.page.locator(".suggest-widget .monaco-list-row", { hasText: "limits" }).first().waitFor();
    await code.page.keyboard.press("Control+Space"); // shows what the key means
    await camera.picture("config");
    await code.page.keyboard.press("Escape");
    await code.run("View: Close All Editors");
    writeFileSync(file, before); // VS Code in a browser saves what is typed
  });
});
