import { strict as assert } from "node:assert";
import { existsSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import type { StatusResult } from "../../src/protocol";
import { need, patienceMs, until } from "./browser";
import { daemonsOf } from "./machine";
import { script, story } from "./script";
import { Workbench } from "./workbench";

describe("issue/6-1 the extension with a bundled daemon", function () {
  this.timeout(3 * patienceMs);
  const code = new Workbench();

  before(() => code.start(script, { bundle: need("BUNDLE") }));
  afterEach(async function () {
    await code.shot(`${this.currentTest?.state ?? "none"} ${this.currentTest?.title ?? ""}`);
    await code.run("View: Close All Editors");
  });
  after(() => code.close());

  it("runs the bundled daemon", () => {
    const { pid } = code.call<StatusResult>("server/status", {});
    const program = readlinkSync(`/proc/${pid}/exe`);
    assert.ok(program.startsWith(join(code.dir, "ud", "User", "globalStorage", "lash.lashd", "bin")), program);
  });

  it("runs through the walkthrough with clicks alone", async () => {
    await code.run("Welcome: Open Walkthrough...");
    await code.choose("Get Started with lashd");
    const page = code.page.locator(".gettingStartedContainer");
    const step = (title: string) => page.locator(".getting-started-step", { hasText: title });
    await step("Try it without a model").waitFor();
    assert.equal(await step("Try it without a model").locator(".complete").count(), 0);
    assert.equal(await step("Leave the demo").count(), 0);
    await step("Use your own model").locator(".complete").waitFor(); // there is a model
    await step("Try it without a model").getByRole("button", { name: "Start Demo" }).click();
    await code.say("fix the typo");
    for (let question = 0; question < 2; question++) {
      await code.chat.getByRole("button", { name: "Allow once" }).click();
    }
    await code.chat.locator(".agentMessage", { hasText: "now says Hello, world!" }).waitFor();
    assert.equal(readFileSync(join(code.work, "greeting.txt"), "utf8"), "Hello, world!\n");
    await code.page.locator(".tab", { hasText: "Welcome" }).click();
    await step("Try it without a model").locator(".complete").waitFor();
    await step("Leave the demo").click();
    await step("Leave the demo").getByRole("button", { name: "Leave Demo" }).click();
    await until(async () => !(await code.page.locator("#lash\\.lashd\\.lashd\\.status").innerText()).includes("demo"));
    await code.status("check").waitFor();
    await step("Start a session").click();
    await step("Start a session").getByRole("button", { name: "New Session" }).click();
    await code.say("hi");
    await code.chat.locator(".agentMessage", { hasText: "Hello!" }).waitFor();
  });

  it("kills only the daemon of the demo from the walkthrough, and the story of the demo goes on", async () => {
    const users = code.call<StatusResult>("server/status", {}).pid;
    await code.run("lashd: Try lashd Without a Model");
    await code.say("tell a story");
    await code.chat.locator(".agentMessage", { hasText: "promised" }).waitFor();
    const [demo, ...others] = daemonsOf(join(code.dir, "ud", "User", "globalStorage", "lash.lashd", "demo"));
    assert.deepEqual([demo !== undefined, others], [true, []]);
    await code.run("Welcome: Open Walkthrough...");
    await code.choose("Get Started with lashd");
    const step = code.page.locator(".gettingStartedContainer .getting-started-step", { hasText: "Try it without a model" });
    await step.click();
    await step.locator("a", { hasText: "kill the daemon of the demo" }).click();
    await until(() => !existsSync(`/proc/${demo}`));
    await code.page.locator(".tab", { hasText: "tell a story" }).click();
    await code.chat.locator(".agentMessage:not(.live)", { hasText: "finished the story." }).waitFor();
    assert.deepEqual(await code.chat.locator(".row .text, .row .markdown").allInnerTexts(), ["tell a story", story]);
    assert.equal(code.call<StatusResult>("server/status", {}).pid, users);
    await code.run("lashd: Leave Demo");
    await code.status("check").waitFor();
  });
});
