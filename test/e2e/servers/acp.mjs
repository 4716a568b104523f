// Is an editor with @agentclientprotocol/sdk from npm: node acp.mjs WORKSPACE SESSION LASHD ARGS... Without a session (-) it makes one, and
// dies when it is asked for a permission. Otherwise it loads the session, allows what is asked, and tries the methods of sessions. Prints
// what it receives to stdout, a JSON value a line.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk/unstable";

const [cwd, session, lashd, ...args] = process.argv.slice(2);
const child = spawn(lashd, args, { stdio: ["pipe", "pipe", "inherit"] });
const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const shown = { text: "", done: () => {} };
const { agent, client } = acp.methods;

function update({ params }) {
  const u = params.update;
  if (u.sessionUpdate === "tool_call" || u.sessionUpdate === "tool_call_update") say({ call: u.status });
  if (u.sessionUpdate === "agent_message_chunk") shown.text += u.content.text;
  if (shown.text.endsWith("Done.")) shown.done();
}

function permit({ params }) {
  say({ asked: params.toolCall.title, status: params.toolCall.status });
  if (session === "-") {
    process.stdout.write("", () => process.kill(process.pid, "SIGKILL"));
    return new Promise(() => {});
  }
  return { outcome: { outcome: "selected", optionId: params.options.find((o) => o.kind === "allow_once").optionId } };
}

const app = acp
  .client({ name: "editor" })
  .onNotification(client.session.update, update)
  .onRequest(client.session.requestPermission, permit);
await app.connectWith(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)), async (peer) => {
  const is = await peer.request(agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
  say({ sessions: Object.keys(is.agentCapabilities.sessionCapabilities).sort() });
  if (session === "-") {
    const { sessionId } = await peer.request(agent.session.new, { cwd, mcpServers: [] });
    await peer.request(agent.session.prompt, { sessionId, prompt: [{ type: "text", text: "run it" }] });
    return;
  }
  const done = new Promise((resolve) => (shown.done = resolve));
  await peer.request(agent.session.load, { sessionId: session, cwd, mcpServers: [] });
  await done;
  say({ said: shown.text });
  const { sessionId } = await peer.request(agent.session.fork, { sessionId: session, cwd });
  const { stopReason } = await peer.request(agent.session.prompt, { sessionId, prompt: [{ type: "text", text: "go on" }] });
  say({ stopReason });
  await peer.request(agent.session.delete, { sessionId });
  const { sessions } = await peer.request(agent.session.list, {});
  say({ left: sessions.length });
});
child.stdin.end();
