import { strict as assert } from "node:assert";
import type { SessionListResult, SnapshotListResult, SnapshotPreviewResult } from "../../src/protocol";
import { patience } from "./browser";
import { script } from "./script";
import { Workbench } from "./workbench";

describe("issue/6-1 a real VS Code, what sessions are and were", function () {
  this.timeout(3 * patience);
  const code = new Workbench();
  const newest = () => code.call<SessionListResult>("session/list", { limit: 1 }).data[0]?.sessionId ?? "";
  const row = (name: string | RegExp) => code.page.getByRole("treeitem", { name }).first();
  const unfold = async (title: string) => {
    const pane = code.page.locator(`.pane-header[aria-label="${title} Section"]`);
    if ((await pane.getAttribute("aria-expanded")) !== "true") {
      await pane.click();
    }
  };
  const field = () => code.page.locator(".quick-input-widget:visible input.input");
  const say = async (text: string, answer: string) => {
    await code.say(text);
    await code.chat.locator(".agentMessage", { hasText: answer }).last().waitFor();
  };

  before(() => code.start(script));
  afterEach(async function () {
    await code.shot(`${this.currentTest?.state ?? "none"} ${this.currentTest?.title ?? ""}`);
    await code.run("View: Close All Editors");
  });
  after(() => code.close());

  it("takes a snapshot, shows what restoring it would change, and restores it once that is wanted", async () => {
    await code.newSession();
    await unfold("Snapshots");
    await say("hi", "Hello!");
    await code.run("lashd: Take Snapshot");
    await field().fill("before");
    await code.page.keyboard.press("Enter");
    await row(/^before/).waitFor();
    await say("and more", "Hello!");
    await row(/^before/).hover();
    await row(/^before/).getByRole("button", { name: "Restore Snapshot" }).click();
    const diff = code.page.locator(".monaco-diff-editor").first();
    await diff.getByText("You: and more").first().waitFor();
    const seen = code.call<SnapshotPreviewResult>("snapshot/preview", { sessionId: newest(), name: "before" });
    assert.equal(seen.now.nodes, 2, "nothing is changed before it is wanted");
    const toast = code.page.locator(".notification-toast", { hasText: "2 entries of the conversation will go out of sight" });
    await toast.getByRole("button", { name: "Restore" }).click();
    await toast.waitFor({ state: "detached" });
    await row(/^hi/).click();
    await code.chat.locator(".userMessage", { hasText: "hi" }).waitFor();
    await code.chat.locator(".userMessage", { hasText: "and more" }).waitFor({ state: "detached" });
    await row(/^before/).click({ button: "right" });
    await code.page.locator(".context-view .action-label", { hasText: "Delete Snapshot" }).first().click();
    await code.dialog("Delete");
    await row(/^before/).waitFor({ state: "detached" });
    assert.deepEqual(code.call<SnapshotListResult>("snapshot/list", { sessionId: newest() }).data, []);
  });

  it("lists what turns did to files, and takes that back", async () => {
    await code.newSession();
    await unfold("Snapshots");
    await code.say("write it");
    await code.chat.getByRole("button", { name: "Allow Once" }).click();
    await row(/^A turn changed 1 file/).click();
    await code.page.locator(".tab", { hasText: "Changes of files" }).waitFor();
    await row(/^A turn changed 1 file/).hover();
    await row(/^A turn changed 1 file/).getByRole("button", { name: "Rewind to before this" }).click();
    await code.choose("Files");
    assert.match(await code.dialog("Rewind"), /new\.txt goes/);
    await row(/^A rewind changed 1 file/).waitFor();
    await row(/^A turn changed 1 file.*undone/).waitFor();
  });
});
