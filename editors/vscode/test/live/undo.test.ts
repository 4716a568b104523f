import { strict as assert } from "node:assert";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { forget, nodeBefore, revert, undo } from "../../src/chat/undo";
import type { Daemon } from "../../src/daemon/daemon";
import type { Item } from "../../src/protocol";
import { Home, until } from "./home";

const script = {
  models: ["demo"],
  turns: [
    { match: { lastUserContains: "write" }, replies: [{ toolCalls: [{ name: "write", args: { path: "new.txt", content: "x\n" } }] }, { text: "Written." }] },
    { match: { lastUserContains: "count" }, replies: [{ toolCalls: [{ name: "shell", args: { command: "touch begun; while [ ! -e go ]; do sleep 0.05; done" } }] }, { text: "Counted." }] },
  ],
  otherwise: { replies: [{ text: "Hello!" }] },
};

describe("part/13 undo with a daemon", function () {
  this.timeout(60_000);
  let home: Home;
  let daemon: Daemon;
  let sessionId: string;

  beforeEach(async () => {
    home = new Home(script);
    daemon = home.connect();
    ({ sessionId } = await daemon.change("session/new", { cwd: home.work, approval: { mode: "allow", sandbox: "fullAccess" } }));
  });
  afterEach(async function () {
    await home.close(this.currentTest?.state === "failed");
  });

  const run = async (text: string) => {
    const { turnId } = await daemon.change("turn/start", { sessionId, input: [{ type: "text", text }] });
    await daemon.call("turn/wait", { turnId, follow: true });
    return turnId;
  };
  const items = async (): Promise<Item[]> => (await daemon.call("session/read", { sessionId, limit: 50 })).data;
  const texts = async () => (await items()).flatMap(({ kind, text }) => (kind === "userMessage" || kind === "agentMessage" ? [text] : []));
  const snapshots = async () => (await daemon.call("snapshot/list", { sessionId })).data.length;

  it("reverts both the conversation and the files", async () => {
    await run("hi");
    const toTurn = await run("write it");
    const file = join(home.work, "new.txt");
    assert.equal(readFileSync(file, "utf8"), "x\n");
    const undone = await undo(daemon, { sessionId, toTurn, files: "also" }, 1);
    assert.deepEqual([await texts(), existsSync(file)], [["hi", "Hello!"], false]);
    await revert(daemon, undone);
    assert.deepEqual([await texts(), readFileSync(file, "utf8"), await snapshots()], [["hi", "Hello!", "write it", "Written."], "x\n", 0]);
  });

  it("keeps nothing for a revert that is not wanted", async () => {
    const toTurn = await run("hi");
    const undone = await undo(daemon, { sessionId, toTurn }, 1);
    assert.equal(await snapshots(), 1);
    await forget(daemon, undone);
    assert.deepEqual([await texts(), await snapshots()], [[], 0]);
  });

  it("undoes a message that steered a turn without the part before it", async () => {
    const { turnId } = await daemon.change("turn/start", { sessionId, input: [{ type: "text", text: "count" }] });
    await until("the command runs", () => existsSync(join(home.work, "begun")));
    await daemon.change("turn/start", { sessionId, input: [{ type: "text", text: "hurry" }], whenBusy: "steer" });
    writeFileSync(join(home.work, "go"), "");
    await daemon.call("turn/wait", { turnId, follow: true });
    const steered = (await items()).find(({ text }) => text === "hurry");
    assert.equal(steered?.turnId, turnId);
    const toNode = await nodeBefore(daemon, sessionId, steered?.itemId.replace(/:\d+$/, "") ?? "");
    await undo(daemon, { sessionId, toNode }, 1);
    assert.deepEqual((await items()).map(({ kind, text, tool }) => [kind, text ?? tool]), [["userMessage", "count"], ["toolCall", "shell"]]);
  });
});
