import { strict as assert } from "node:assert";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { patienceMs } from "./browser";
import { daemonsOf } from "./machine";
import { chatIn } from "./parts";
import { script } from "./script";
import { Workbench } from "./workbench";

describe("part/13 a folder without trust", function () {
  this.timeout(3 * patienceMs);
  const code = new Workbench();

  before(() => code.start(script, { restricted: true }));
  afterEach(async function () {
    await code.shot(`${this.currentTest?.state ?? "none"} ${this.currentTest?.title ?? ""}`);
  });
  after(() => code.close());

  it("shows only how to trust it, and starts nothing", async () => {
    await code.view();
    await code.page.locator(".welcome-view-content", { hasText: "Trust this folder to use lashd." }).waitFor();
    await code.run("lashd: New Session");
    await code.page.locator(".notification-toast", { hasText: "Trust this folder to use lashd. Its agents run commands here." }).waitFor();
    assert.deepEqual(readdirSync(code.home).sort(), ["config.toml", "script.json"]);
    assert.deepEqual(daemonsOf(code.home), []);
  });

  it("works after the user has trusted it, without a reload", async () => {
    await code.page.locator(".welcome-view-content").getByRole("button", { name: "Manage Workspace Trust" }).click();
    await code.page.locator(".workspace-trust-editor").getByRole("button", { name: "Trust", exact: true }).click();
    await code.status("check").waitFor();
    await code.page.getByRole("button", { name: /^Close Modal Editor/ }).click(); // the page about trust is in front of the window
    assert.equal(existsSync(join(code.home, "lashd.db")), true);
    await code.newSession();
    await code.say("hi");
    await code.chat.locator(".agentMessage", { hasText: "Hello!" }).waitFor();
  });

  it("shows the chat of the side bar after the window was closed and opened again", async () => {
    await code.run("lashd: Open Chat in Side Bar");
    await (await chatIn(code.page, "auxiliarybar")).locator(".agentMessage", { hasText: "Hello!" }).waitFor();
    await code.load();
    await code.shot("opened again");
    await (await chatIn(code.page, "auxiliarybar")).locator(".agentMessage", { hasText: "Hello!" }).waitFor();
  });
});
