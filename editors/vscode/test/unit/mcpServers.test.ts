import { strict as assert } from "node:assert";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { actionsOf, isSettled, nameProblem, outcomeText, placesFor, serversIn, stateText, withoutServer, withServer } from "../../src/model/mcpServers";
import { folderServers, layoutTitle } from "../../src/views/mcpFiles";
import type { PluginServer } from "../../src/protocol";

const server: PluginServer = { name: "docs", transport: "http", state: "ready", tools: 2 };

describe("part13/vscode an MCP server", () => {
  it("has the buttons that fit its login and its file", () => {
    assert.deepEqual(actionsOf(server), ["log", "restart"]);
    assert.deepEqual(actionsOf({ ...server, login: "needed" }, { removable: false }), ["signIn", "log", "restart", "configure"]);
    assert.deepEqual(actionsOf({ ...server, login: "loggedIn" }, { removable: true }), ["signOut", "log", "restart", "configure", "remove"]);
    assert.deepEqual([undefined, "needed", "loggedIn"].map((login) => stateText({ ...server, login: login as PluginServer["login"] })), ["ready", "needs you to sign in", "ready, signed in"]);
  });

  it("that does not work says so in words, and is restarted first", () => {
    assert.deepEqual(["idle", "failed", "quarantined", "unreachable", "resumed"].map((state) => stateText({ ...server, state })), ["not started yet", "failed", "failed to start", "cannot be reached", "starts with its next call"]);
    assert.deepEqual(["quarantined", "failed", "unreachable"].map((state) => actionsOf({ ...server, state })[0]), ["restart", "restart", "restart"]);
  });

  it("is reported when its start has ended", () => {
    assert.deepEqual(["idle", "starting", "ready", "failed", "quarantined", "unreachable"].map((state) => isSettled({ ...server, state })), [false, false, true, true, true, true]);
    assert.equal(isSettled({ ...server, state: "idle", login: "needed" }), true);
    assert.equal(outcomeText(server), "docs is ready, with 2 tools. Your sessions can use it from their next turn on.");
    assert.equal(outcomeText({ ...server, state: "quarantined", error: "chdir /x: no such directory" }), "docs failed to start: chdir /x: no such directory.");
    assert.equal(outcomeText({ ...server, login: "needed" }), "docs needs you to sign in.");
    assert.equal(outcomeText({ ...server, state: "starting" }), "docs is added, but has not started yet.");
  });

  it("is offered for the open folder first, in a few words", () => {
    assert.deepEqual(placesFor({ user: "/u/.mcp.json", cwd: "/w" }).map(({ label, folder }) => [label, folder]), [["$(root-folder) This folder", "/w"], ["$(account) All of your sessions", undefined]]);
    assert.deepEqual(placesFor({ user: "/u/.mcp.json" }).map(({ label }) => label), ["$(account) All of your sessions"]);
    assert.ok((placesFor({ cwd: "/w" })[0]?.detail.length ?? 0) <= 80);
  });

  it("part13 is listed from a regular file alone, so that a folder of others stops no list", () => {
    const dir = mkdtempSync(join(tmpdir(), "servers-"));
    const file = join(dir, ".mcp.json");
    const listed = (make: () => void) => {
      rmSync(file, { recursive: true, force: true });
      make();
      return [folderServers(dir).join(), layoutTitle(dir)];
    };
    const text = '{"mcpServers":{"docs":{}}}';
    assert.deepEqual(listed(() => writeFileSync(file, text)), ["docs", ".mcp.json (docs)"]);
    const none = ["", ".mcp.json"];
    assert.deepEqual(listed(() => mkdirSync(file)), none);
    assert.deepEqual(listed(() => writeFileSync(file, text.padEnd(2 << 20))), none);
    assert.deepEqual(listed(() => symlinkSync(".mcp.json", file)), ["", "Files for agents"]);
    assert.deepEqual(listed(() => symlinkSync("/dev/zero", file)), none);
    rmSync(dir, { recursive: true });
  });

  it("is added to a file, whose other servers and fields stay", () => {
    const one = withServer("", "clock", "npx -y 'clock server' --zone=\"a b\" \"\"");
    assert.deepEqual(JSON.parse(one), { mcpServers: { clock: { command: "npx", args: ["-y", "clock server", "--zone=a b", ""] } } });
    const two = withServer('{"other": 1, "mcpServers": {"a": {"command": "b"}}}', "docs", " https://example.com/mcp ");
    assert.deepEqual(JSON.parse(two), { other: 1, mcpServers: { a: { command: "b" }, docs: { type: "http", url: "https://example.com/mcp" } } });
    assert.throws(() => withServer(one, "clock", "x"), /a server clock already/);
    assert.throws(() => withServer("{", "clock", "x"), SyntaxError);
    assert.deepEqual(JSON.parse(withServer("", "tool", "./tool --fast", (program) => `/work/${program}`)), { mcpServers: { tool: { command: "/work/./tool", args: ["--fast"] } } });
  });

  it("is removed from a file, whose other servers and fields stay", () => {
    const file = '{"other": 1, "mcpServers": {"a": {"command": "b"}, "docs": {"url": "c"}}}';
    assert.deepEqual(serversIn(file), ["a", "docs"]);
    assert.deepEqual(JSON.parse(withoutServer(file, "docs") ?? ""), { other: 1, mcpServers: { a: { command: "b" } } });
    assert.equal(withoutServer('{"mcpServers": {"docs": {"url": "c"}}}', "docs"), undefined);
    assert.deepEqual(JSON.parse(withoutServer('{"other": 1, "mcpServers": {"docs": {}}}', "docs") ?? ""), { other: 1, mcpServers: {} });
    assert.deepEqual(serversIn("{"), []);
  });

  it("has a name that tools can have", () => {
    assert.deepEqual(["docs", "a-b_1", "a b", "", "a/b"].map((name) => nameProblem(name) === ""), [true, true, false, false, false]);
  });
});
