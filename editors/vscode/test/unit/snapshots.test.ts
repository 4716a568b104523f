import { strict as assert } from "node:assert";
import { sizeText, restoreText, sideText } from "../../src/model/snapshots";
import type { Item, SnapshotSide, ToolSetting } from "../../src/protocol";

const side: SnapshotSide = { nodeId: "nod_1", nodes: 0, items: [], plugins: [], tools: { generation: 1, tools: {} }, monitors: [] };
const snapshot = { name: "before", nodeId: "nod_1", atMs: 1, nodes: 4, bytes: 2048 };
const setting = (name: string, more: Partial<ToolSetting>): ToolSetting => ({ manifest: { name, description: "" }, ...more });

describe("issue/6-1 snapshots", () => {
  it("compare the state that a restore changes", () => {
    const items: Item[] = [
      { itemId: "a", kind: "userMessage", status: "completed", atMs: 1, text: "go\non" },
      { itemId: "b", kind: "toolCall", status: "failed", atMs: 1, tool: "shell", args: { command: "ls" } },
    ];
    const text = sideText({
      ...side, nodes: 5, items, execution: "abc",
      plugins: [{ plugin: "plan", version: "1", revision: "2", state: { steps: [] }, artifacts: [{ name: "notes", size: 9, digest: "def" }] }],
      tools: { generation: 7, tools: { b: setting("shell", { member: false }), a: setting("read", {}) } },
      monitors: [{ spec: { monitorId: "logs", command: "tail" }, armed: true, state: "running", eventCount: 1 }],
    });
    assert.deepEqual(text.split("\n").filter((line) => line !== ""), [
      "Conversation (where the two sides differ)", "  (5 entries; only the newest are shown)", "  You: go", "  on", '  Tool shell {"command":"ls"}: failed',
      "Plugins", "  plan 1", "  {", '    "steps": []', "  }", "  notes: 9 bytes, sha256 def",
      "Tools", "  read: on", "  shell: off",
      "Monitors", "  logs: running, armed", "  tail",
      "Code executor state", "  sha256 abc",
    ]);
  });

  it("ignore counters in a comparison", () => {
    assert.equal(sideText(side), sideText({ ...side, nodeId: "nod_2", tools: { generation: 9, tools: {} } }));
  });

  it("describe a restore in advance", () => {
    const asked = restoreText({ snapshot, now: { ...side, nodes: 1 }, then: { ...side, nodes: 3 } });
    assert.equal(asked, 'Restore the snapshot "before"? 1 conversation entry will be hidden, not deleted. 3 conversation entries will reappear. Files will not change.');
  });

  it("have a size", () => {
    assert.equal(sizeText(snapshot), "4 entries, 2 KiB");
  });
});
