import { strict as assert } from "node:assert";
import { join } from "node:path";
import type { SessionListResult } from "../../src/protocol";
import { patienceMs, until } from "./browser";
import { script, story } from "./script";
import { Workbench } from "./workbench";

describe("issue/6-1 windows", function () {
  this.timeout(3 * patienceMs);
  const code = new Workbench();
  const row = (window: Workbench, title: string | RegExp) => window.page.getByRole("treeitem", { name: title }).first();

  before(() => code.start(script, { folders: ["work", "other"] }));
  afterEach(async function () {
    await code.shot(`${this.currentTest?.state ?? "none"} ${this.currentTest?.title ?? ""}`);
    await code.run("View: Close All Editors");
  });
  after(() => code.close());

  it("with several folders show the sessions of these folders only", async () => {
    const begun = { work: "here", other: "there", elsewhere: "nowhere" };
    for (const [folder, title] of Object.entries(begun)) {
      code.write(`${folder}/readme.txt`, `the readme of ${folder}\n`);
      const { sessionId } = code.call<{ sessionId: string }>("session/new", { cwd: join(code.dir, folder) });
      code.call("session/setTitle", { sessionId, title });
    }
    await code.view();
    await row(code, /^here/).waitFor();
    await row(code, /^there/).waitFor();
    assert.equal(await row(code, /^nowhere/).count(), 0);
  });

  it("with several folders ask for the folder of a new session", async () => {
    await code.view();
    await code.run("lashd: New Session");
    await code.choose("other");
    await code.say("look at the editor");
    await code.chat.locator(".agentMessage", { hasText: "I have seen it." }).waitFor();
    await code.page.locator(".monaco-editor .view-line", { hasText: "the readme of other" }).waitFor();
    const [newest] = code.call<SessionListResult>("session/list", { limit: 1 }).data;
    assert.equal(newest?.cwd, join(code.dir, "other"));
  });

  describe("two windows with one daemon", () => {
    let other: Workbench;
    const both = async (title: string) => {
      await code.view();
      await code.run("lashd: New Session");
      await code.choose("work");
      await code.say("hi");
      await code.chat.locator(".agentMessage", { hasText: "Hello!" }).waitFor();
      const [newest] = code.call<SessionListResult>("session/list", { limit: 1 }).data;
      code.call("session/setTitle", { sessionId: newest?.sessionId, title });
      await other.view();
      await row(other, title).click();
      await other.chat.locator(".agentMessage", { hasText: "Hello!" }).waitFor();
    };

    before(async () => {
      other = await code.another();
    });
    after(() => other.page.close());

    it("stream the same turn", async () => {
      await both("a story for two");
      await code.say("tell a story");
      await Promise.all([code, other].map((window) => window.chat.locator(".agentMessage.live", { hasText: "promised" }).waitFor()));
      for (const window of [code, other]) {
        await window.chat.locator(".agentMessage:not(.live)", { hasText: "finished the story." }).waitFor();
        assert.equal(await window.chat.locator(".row .markdown").last().innerText(), story);
      }
    });

    it("show a question in both until one of them answers", async () => {
      await both("a question for two");
      await code.say("write it");
      const card = (window: Workbench) => window.chat.locator("#asked .card");
      await Promise.all([card(code).waitFor(), card(other).waitFor()]);
      await other.chat.getByRole("button", { name: "Allow once" }).click();
      await card(code).waitFor({ state: "detached" });
      await code.chat.locator(".agentMessage", { hasText: "Written." }).waitFor();
      await other.chat.locator(".agentMessage", { hasText: "Written." }).waitFor();
      await until(() => code.status("check").isVisible());
    });
  });
});
