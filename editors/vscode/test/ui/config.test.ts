import { strict as assert } from "node:assert";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { StatusResult } from "../../src/protocol";
import { patienceMs, until } from "./browser";
import { script } from "./script";
import { Workbench } from "./workbench";

describe("issue/6-1 config.toml in an editor", function () {
  this.timeout(3 * patienceMs);
  const code = new Workbench();

  before(() => code.start(script));
  afterEach(async function () {
    await code.shot(`${this.currentTest?.state ?? "none"} ${this.currentTest?.title ?? ""}`);
  });
  after(() => code.close());

  it("is completed, checked during typing, and applied after a restart", async () => {
    const { pid } = code.call<StatusResult>("server/status", {});
    const keys = code.page.keyboard;
    const suggestion = (label: string) => code.page.locator(".suggest-widget .monaco-list-row", { hasText: label });
    const problems = (many: number) => until(async () => new RegExp(`^\\s*${many}\\s+0`).test(await code.page.locator("#status\\.problems").innerText()));
    await code.run("lashd: Open config.toml");
    await code.page.locator(".monaco-editor .view-line", { hasText: /^script.=/ }).click();
    await keys.press("Control+End");
    await keys.type("app");
    await suggestion("approval").waitFor();
    await keys.press("Enter");
    await suggestion("deny").click();
    await keys.press("End");
    await keys.type("\nmodle");
    await problems(1);
    await code.shot("config");
    for (let letter = 0; letter < "\nmodle".length; letter++) {
      await keys.press("Backspace");
    }
    await problems(0);
    await keys.press("Control+s");
    await code.page.locator("#lash\\.lashd\\.lashd\\.status", { hasText: "lashd: restart needed" }).waitFor();
    await code.page.locator(".notification-toast", { hasText: "Restart the daemon" }).getByRole("button", { name: "Restart Daemon" }).click();
    assert.match(readFileSync(join(code.home, "config.toml"), "utf8"), /^approval = "deny"$/m);
    await until(() => code.call<StatusResult>("server/status", {}).pid !== pid);
    await code.status("check").waitFor(); // the restart is done
    await code.newSession();
    await code.say("write it");
    await code.chat.locator(".toolCall .failed").waitFor();
  });
});
