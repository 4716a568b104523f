// Tests lashd with an unmodified vscode-jsonrpc, as an extension would use it: node jsonrpc.mjs WORKSPACE LASHD ARGS...
// The scripted model replies "hello" to the first turn and never replies to the second.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  CancellationToken,
  CancellationTokenSource,
  ResponseError,
  StreamMessageReader,
  StreamMessageWriter,
  createMessageConnection,
} from "vscode-jsonrpc/node";

/** @import { ErrorData, Event, Methods } from "../src/protocol.js" */

const [workspace, command, ...args] = process.argv.slice(2);
assert(workspace && command, "usage: jsonrpc.mjs WORKSPACE LASHD ARGS...");
const lashd = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const connection = createMessageConnection(new StreamMessageReader(lashd.stdout), new StreamMessageWriter(lashd.stdin));

/**
 * @template {keyof Methods} M
 * @param {M} method
 * @param {Methods[M]["params"]} params
 * @param {CancellationToken} [token]
 * @returns {Promise<Methods[M]["result"]>}
 */
const call = (method, params, token = CancellationToken.None) => connection.sendRequest(method, params, token);

/**
 * Returns the error of a request that must fail.
 * @param {Promise<unknown>} request
 * @returns {Promise<ResponseError<ErrorData>>}
 */
const failure = (request) =>
  request.then(
    (result) => assert.fail(`answered ${JSON.stringify(result)}`),
    (error) => error,
  );

/** @type {Event[]} */
const events = [];
const seen = new EventTarget();
connection.onNotification("session/event", (/** @type {Event} */ event) => {
  events.push(event);
  seen.dispatchEvent(new globalThis.Event(event.type));
});
connection.listen();

const opened = await call("initialize", { clientInfo: { name: "vscode-jsonrpc" } });
assert.equal(opened.protocolVersion, 1);

const { sessionId } = await call("session/new", { cwd: workspace });
const completed = once(seen, "turn/completed");
const turn = await call("turn/start", { sessionId, input: [{ type: "text", text: "say hello" }] });
await completed;
const end = events.at(-1);
assert.equal(end?.turnId, turn.turnId);
assert.equal(end?.outcome?.text, "hello");
assert.equal(events.map((event) => (event.type === "item/delta" ? event.text : "")).join(""), "hello");
const seqs = events.flatMap((event) => event.seq ?? []);
assert.deepEqual(seqs, seqs.map((_, i) => turn.seq + i), "seqs start at turn/accepted and have no gaps");

const silent = await call("turn/start", { sessionId, input: [{ type: "text", text: "say nothing" }] });
const source = new CancellationTokenSource();
const cancelled = failure(call("turn/wait", { turnId: silent.turnId }, source.token));
source.cancel();
assert.equal((await cancelled).code, -32800);
assert.equal((await call("turn/read", { turnId: silent.turnId })).state, "running", "the turn keeps running");

const missing = await failure(call("session/read", { sessionId: "ses_lost" }));
assert(missing instanceof ResponseError);
assert.equal(missing.code, -32002);
assert.equal(missing.data?.kind, "sessionNotFound");
const wrong = await failure(connection.sendRequest("turn/start", { sessionId, input: "text" }));
assert.equal(wrong.code, -32602);
assert.equal(wrong.data?.pointer, "/input");

const exited = once(lashd, "exit");
const closed = new Promise((resolve) => connection.onClose(() => resolve(undefined)));
await call("shutdown", {});
await connection.sendNotification("exit");
assert.deepEqual(await exited, [0, null]);
await closed;
console.log(`${seqs.length} durable events`);
