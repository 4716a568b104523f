import { readFileSync, writeFileSync } from "node:fs";
import { patienceMs } from "../ui/browser";
import { script } from "../ui/script";
import { chooseTheme, themes, themesFile, type Theme } from "../ui/themes";
import { Workbench } from "../ui/workbench";

/** Renews the colors of themes with which the page of a chat is tested. Run it with FLOWS=pictures scripts/test-editor. */
describe("colors of themes", function () {
  this.timeout(6 * patienceMs);
  const code = new Workbench();

  before(() => code.start(script));
  after(() => code.close());

  it("are those of a webview", async () => {
    const used = [...new Set(readFileSync("src/webview/style.css", "utf8").match(/--vscode-[\w-]+/g))].sort();
    await code.newSession();
    const all: Record<string, Record<string, string>> = {};
    for (const [theme, name] of Object.entries(themes)) {
      await chooseTheme(code, theme as Theme);
      await code.chat.locator(`body.${name}`).waitFor();
      all[theme] = await code.chat.locator("html").evaluate((html, names) => {
        const style = getComputedStyle(html);
        return Object.fromEntries(names.map((key) => [key, style.getPropertyValue(key)] as const).filter(([, value]) => value !== ""));
      }, used);
    }
    writeFileSync(themesFile, `${JSON.stringify(all, undefined, 1)}\n`);
  });
});
