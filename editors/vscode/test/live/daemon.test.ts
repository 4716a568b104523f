import { strict as assert } from "node:assert";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Untrusted } from "../../src/chat/untrusted";
import { Daemon } from "../../src/daemon/daemon";
import { FolderLinks } from "../../src/model/folders";
import { outlineOf } from "../../src/model/sessions";
import { FollowedSession, Sessions } from "../../src/sessions";
import { Home, isReady, log, until } from "./home";

const story = "Once upon a time a small daemon promised that whatever it had acknowledged would still be there in the morning.";

const script = {
  models: ["demo"],
  turns: [
    { match: { lastUserContains: "story" }, replies: [{ text: story, chunkSize: 3, delayMs: 15 }] },
    { match: { lastUserContains: "write" }, replies: [{ toolCalls: [{ name: "write", args: { path: "new.txt", content: "x\n" } }] }, { text: "written" }] },
  ],
  otherwise: { replies: [{ text: "hello" }] },
};

const start = (daemon: Daemon, sessionId: string, text: string) => daemon.change("turn/start", { sessionId, input: [{ type: "text", text }] });
const texts = (followed: FollowedSession) => followed.view?.items.map((item) => item.text ?? item.tool) ?? [];

describe("issue/6-1 the connection to a daemon", function () {
  this.timeout(60_000);
  let home: Home;

  beforeEach(() => {
    home = new Home(script);
  });
  afterEach(async function () {
    await home.close(this.currentTest?.state === "failed");
  });

  it("loses and repeats nothing if the daemon is killed during a reply", async () => {
    const daemon = home.connect();
    const { sessionId } = await daemon.change("session/new", { cwd: home.work });
    const followed = new FollowedSession(daemon, sessionId, log);
    const seqs: number[] = [];
    followed.onChange((change) => void ("events" in change && seqs.push(...change.events.flatMap((event) => event.seq ?? []))));
    await start(daemon, sessionId, "tell a story");
    for (const part of [8, 30]) {
      await until("text streams", () => (followed.view?.items.at(-1)?.text?.length ?? 0) > part && isReady(daemon));
      await home.kill(daemon);
      await until("the loss is noticed", () => !isReady(daemon));
    }
    await until("the turn ends", () => followed.view?.turnId === undefined && followed.view?.items.length === 2 && Object.keys(followed.view.live).length === 0);
    assert.deepEqual(texts(followed), ["tell a story", story]);
    assert.deepEqual(seqs, seqs.map((_, at) => at + 1));
    const fresh = new FollowedSession(daemon, sessionId, log);
    await until("a second view exists", () => fresh.view);
    assert.deepEqual(texts(fresh), texts(followed));
  });

  it("33 names the plugins of the folder that wait for approval to a new chat, until they are approved", async () => {
    writeFileSync(join(home.work, ".mcp.json"), JSON.stringify({ mcpServers: { docs: { command: "true" } } }));
    const daemon = home.connect();
    const all = new Sessions(daemon, log);
    await until("server events arrive", () => all.decisionsKnown);
    const { sessionId } = await daemon.change("session/new", { cwd: home.work });
    const followed = new FollowedSession(daemon, sessionId, log);
    await until("a view exists", () => followed.view);
    const told: string[] = [];
    const untrusted = new Untrusted(daemon, followed, (message) => told.push(JSON.stringify(message)), log);
    await untrusted.show();
    assert.deepEqual(told, ['{"type":"untrusted","plugins":["project"]}']);
    const { digest } = await daemon.call("plugin/read", { name: "project", cwd: home.work });
    await daemon.change("plugin/trust", { name: "project", cwd: home.work, digest: digest ?? "" });
    await until("the chat hears of the approval", () => told.at(-1) === '{"type":"untrusted","plugins":[]}');
    untrusted.dispose();
  });

  it("makes a change once if its answer was lost", async () => {
    const daemon = home.connect('"inputId"');
    const { sessionId } = await daemon.change("session/new", { cwd: home.work });
    const { turnId, duplicate } = await start(daemon, sessionId, "hi");
    const { data } = await daemon.call("turn/list", { sessionId });
    assert.deepEqual([data.map((turn) => turn.turnId), duplicate], [[turnId], true]);
  });

  it("makes a change if the daemon is killed before it answers", async () => {
    const daemon = home.connect();
    const { sessionId } = await daemon.change("session/new", { cwd: home.work });
    const { pid } = await daemon.call("server/status", {});
    const started = start(daemon, sessionId, "hi");
    process.kill(pid, "SIGKILL");
    const { turnId } = await started;
    const { data } = await daemon.call("turn/list", { sessionId });
    assert.deepEqual(data.map((turn) => turn.turnId), [turnId]);
  });

  it("shows a question in every window until one of them answers", async () => {
    const [one, two] = [home.connect(), home.connect()];
    const sessions = new Sessions(one, log);
    const { sessionId } = await one.change("session/new", { cwd: home.work });
    const [mine, theirs] = [new FollowedSession(one, sessionId, log), new FollowedSession(two, sessionId, log)];
    await until("both are attached", () => mine.view && theirs.view);
    await start(one, sessionId, "write it");
    await until("both are asked", () => mine.view?.decisions.length === 1 && theirs.view?.decisions.length === 1 && sessions.decisions.length === 1);
    const [decision] = theirs.view?.decisions ?? [];
    assert.ok(decision?.argsHash);
    const answer = { decisionId: decision.decisionId, argsHash: decision.argsHash };
    assert.equal((await two.change("decision/respond", { ...answer, choice: "allowOnce" })).won, true);
    await until("it is settled everywhere", () => mine.view?.decisions.length === 0 && sessions.decisions.length === 0);
    const late = await one.change("decision/respond", { ...answer, choice: "reject" });
    assert.deepEqual([late.won, late.answer.choice, late.answer.by], [false, "allowOnce", two.clientId]);
  });

  it("closes questions without a connection and opens them again after a restart", async () => {
    const daemon = home.connect();
    const sessions = new Sessions(daemon, log);
    const { sessionId } = await daemon.change("session/new", { cwd: home.work });
    await start(daemon, sessionId, "write it");
    await until("it is asked", () => sessions.decisions.length === 1);
    const asked = sessions.decisions[0]?.decisionId;
    let settled = false;
    sessions.onChange(() => void (settled ||= sessions.decisions.length === 0));
    await home.kill(daemon);
    await until("it is settled", () => settled);
    await until("it is asked again", () => sessions.decisions[0]?.decisionId === asked);
  });

  it("lists the sessions of a folder that was opened through a symbolic link", async () => {
    const daemon = home.connect();
    const sessions = new Sessions(daemon, log);
    const link = join(home.dir, "link");
    symlinkSync(home.work, link);
    const { sessionId } = await daemon.change("session/new", { cwd: link });
    await daemon.change("session/setTitle", { sessionId, title: "used" });
    await until("the session is known", () => sessions.list.get(sessionId)?.title === "used");
    const real = new FolderLinks().resolve([link]).map((folder) => folder.real);
    assert.deepEqual(outlineOf(sessions.list, real).groups.idle.map((s) => s.sessionId), [sessionId]);
  });

  it("part13/vscode keeps what changes while the list of sessions is read", async () => {
    const daemon = home.connect();
    const sessions = new Sessions(daemon, log);
    const { sessionId } = await daemon.change("session/new", { cwd: home.work });
    for (let round = 0; round < 100; round++) {
      const loaded = sessions.load();
      for (let turn = 0; turn < round; turn++) { // the change comes at another step of the load in each round
        await new Promise(setImmediate);
      }
      await daemon.change("session/setTitle", { sessionId, title: `title ${round}` });
      await loaded;
      await until("the newest title is known", () => sessions.list.get(sessionId)?.title === `title ${round}`);
    }
  });

  it("part13/vscode says why lashd cannot start, and connects once the reason is gone", async () => {
    const daemon = home.connect();
    await until("it is ready", () => isReady(daemon));
    await daemon.call("shutdown", { daemon: true });
    const config = join(home.dir, "home", "config.toml");
    const good = readFileSync(config, "utf8");
    writeFileSync(config, `${good}modle = "x"\n`);
    daemon.start();
    await until("it fails twice", () => daemon.state.kind === "failing");
    await assert.rejects(daemon.call("ping", {}), /unknown key "modle"; did you mean model\?/);
    writeFileSync(config, good);
    await until("it is ready again", () => isReady(daemon));
  });

  it("reports a missing program", async () => {
    const daemon = new Daemon({ program: () => ({ command: "/nowhere/lashd", args: [], env: {} }), version: "test", log });
    daemon.start();
    await until("it fails", () => daemon.state.kind === "failed");
    await assert.rejects(daemon.call("ping", {}), /ENOENT/);
  });
});
