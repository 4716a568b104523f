// Runs a script of test/clients with an unmodified vscode-jsonrpc: node script.mjs SCRIPT WORKSPACE LASHD ARGS...
// Prints the answers and events to stdout.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { StreamMessageReader, StreamMessageWriter, createMessageConnection } from "vscode-jsonrpc/node";

/** @typedef {{ call?: string, await?: string, notify?: string, params?: object, keep?: Record<string, string[]> }} Step */

const [script, workspace, command, ...args] = process.argv.slice(2);
assert(script && workspace && command, "usage: script.mjs SCRIPT WORKSPACE LASHD ARGS...");
const lashd = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const connection = createMessageConnection(new StreamMessageReader(lashd.stdout), new StreamMessageWriter(lashd.stdin));

/** @type {any[]} */
const events = [];
let more = () => {};
connection.onNotification("session/event", (event) => {
  events.push(event);
  more();
});
const closed = new Promise((resolve) => connection.onClose(() => resolve(undefined)));
connection.listen();

/** @type {Record<string, unknown>} */
const kept = { $cwd: workspace };
let at = 0;

/** Stores the fields of a value that a step keeps. @param {Step} step @param {any} value */
const keep = (step, value) => {
  for (const [name, path] of Object.entries(step.keep ?? {})) {
    kept[name] = path.reduce((within, key) => within[key], value);
  }
};

/** Waits for the next event of a type. @param {string} type */
const next = async (type) => {
  for (; ; at++) {
    while (at === events.length) await new Promise((resolve) => (more = () => resolve(undefined)));
    if (events[at].type === type) return events[at++];
  }
};

for (const line of readFileSync(script, "utf8").trim().split("\n")) {
  /** @type {Step} */
  const step = JSON.parse(line, (_, value) => (typeof value === "string" && value in kept ? kept[value] : value));
  if (step.await) {
    keep(step, await next(step.await));
  } else if (step.notify) {
    await connection.sendNotification(step.notify);
  } else if (step.call) {
    const answer = await connection.sendRequest(step.call, step.params).then(
      (result) => (keep(step, result), { result }),
      ({ code, message, data }) => ({ error: { code, message, data } }),
    );
    console.log(JSON.stringify({ call: step.call, ...answer }));
  }
}
await closed;
for (const event of events) console.log(JSON.stringify({ event }));
