// Plays a script with json-rpc-2.0 from npm: node jsonrpc.mjs SCRIPT WORKSPACE LASHD ARGS... prints what it receives to stdout.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { JSONRPCClient, JSONRPCServer, JSONRPCServerAndClient } from "json-rpc-2.0";

const [script, workspace, lashd, ...args] = process.argv.slice(2);
const child = spawn(lashd, args, { stdio: ["pipe", "pipe", "inherit"] });
const ended = new Promise((resolve) => child.on("exit", resolve));
const peer = new JSONRPCServerAndClient(
  new JSONRPCServer(),
  new JSONRPCClient(async (message) => void child.stdin.write(JSON.stringify(message) + "\n")),
);
const kept = { $cwd: workspace };
const events = [];
let at = 0;
let more = () => {};
peer.addMethod("session/event", (event) => {
  events.push(event);
  more();
});
createInterface({ input: child.stdout }).on("line", (line) => peer.receiveAndSend(JSON.parse(line)));

const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const tell = () => events.forEach((event) => say({ event }));

// filled is a line with what was kept in the place of its names.
const filled = (line) => JSON.parse(line, (_, value) => (typeof value === "string" && value in kept ? kept[value] : value));

function keep(step, value) {
  for (const [name, path] of Object.entries(step.keep ?? {})) {
    kept[name] = path.reduce((v, key) => v[key], value);
  }
}

async function call(step) {
  try {
    const result = await peer.request(step.call, step.params);
    say({ call: step.call, result });
    keep(step, result);
  } catch ({ code, message, data }) {
    say({ call: step.call, error: { code, message, data } });
  }
}

async function awaited(step) {
  for (;;) {
    for (; at < events.length; ) {
      const event = events[at++];
      if (event.type === step.await) return keep(step, event);
    }
    await new Promise((resolve) => (more = resolve));
  }
}

for (const line of readFileSync(script, "utf8").trim().split("\n")) {
  const step = filled(line);
  if (step.call) await call(step);
  else if (step.await) await awaited(step);
  else if (step.notify) peer.notify(step.notify);
  else {
    tell();
    process.stdout.write("", () => process.kill(process.pid, "SIGKILL"));
    await new Promise(() => {});
  }
}
await ended;
tell();
