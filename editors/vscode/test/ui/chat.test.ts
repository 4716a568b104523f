import { strict as assert } from "node:assert";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { SessionListResult } from "../../src/protocol";
import { patienceMs } from "./browser";
import { script } from "./script";
import { Workbench } from "./workbench";

describe("issue/6-1 @lashd in VS Code's own chat", function () {
  this.timeout(3 * patienceMs);
  const code = new Workbench();
  const answer = (text: string) => code.page.locator(".interactive-response", { hasText: text });
  const ask = async (text: string) => {
    await code.page.locator(".interactive-input-part .monaco-editor").first().click();
    await code.page.keyboard.type(`@lashd ${text}`);
    await code.page.keyboard.press("Escape"); // close the suggestions
    await code.page.keyboard.press("Enter");
  };

  before(() => code.start(script, { settings: { "lashd.vscodeChat": true, "chat.disableAIFeatures": false } }));
  afterEach(async function () {
    await code.shot(`${this.currentTest?.state ?? "none"} ${this.currentTest?.title ?? ""}`);
  });
  after(() => code.close());

  it("answers with one session for the whole chat", async () => {
    await code.run("Chat: Focus on Chat View");
    await ask("hi");
    await answer("Hello!").first().waitFor();
    await ask("and again");
    await answer("Hello!").nth(1).waitFor();
    const { data } = code.call<SessionListResult>("session/list", {});
    assert.deepEqual(data.map((session) => [session.cwd, session.turnIndex]), [[code.work, 2]]);
  });

  it("asks before a file is written", async () => {
    await ask("write it");
    await code.page.locator(".interactive-response").getByRole("button", { name: "Allow once" }).click();
    await answer("Written.").waitFor();
    assert.equal(readFileSync(join(code.work, "new.txt"), "utf8"), "x\ny\n");
  });
});
