// Is an editor with @agentclientprotocol/sdk from npm that a test drives: node acpdrive.mjs LASHD ARGS... Reads a JSON value a line from
// stdin: {id, method, params} sends a request, the same without an id a notification, and {answer, result} answers a request of the agent.
// Prints a JSON value a line: {id, result} or {id, error}, {update}, and {ask, method, params} for a request of the agent.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk/unstable";

const [lashd, ...args] = process.argv.slice(2);
const child = spawn(lashd, args, { stdio: ["pipe", "pipe", "inherit"] });
child.on("exit", () => process.exit());
const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const asked = [];
const { client } = acp.methods;

const app = acp.client({ name: "editor" }).onNotification(client.session.update, ({ params }) => say({ update: params.update }));
const requests = [client.session.requestPermission, client.elicitation.create, ...Object.values(client.fs), ...Object.values(client.terminal)];
for (const method of requests) {
  app.onRequest(method, ({ params }) => new Promise((resolve) => say({ ask: asked.push(resolve) - 1, method, params })));
}

async function handle(peer, { id, method, params, answer, result }) {
  if (answer !== undefined) return asked[answer](result);
  if (id === undefined) return peer.notify(method, params);
  try {
    say({ id, result: (await peer.request(method, params)) ?? {} });
  } catch (e) {
    say({ id, error: { code: e.code ?? 0, message: e.message, data: e.data } });
  }
}

await app.connectWith(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)), async (peer) => {
  for await (const line of createInterface({ input: process.stdin })) void handle(peer, JSON.parse(line));
  child.stdin.end();
});
