/** A plugin that offers one of everything, for the tests of the SDK. */
import { execFileSync } from "node:child_process";
import { HostError, Outcome, Plugin, Result, abort, deny, replaceArgs, succeed, trace } from "../sdk/typescript/lashd-plugin.mts";
import type { Session } from "../sdk/typescript/lashd-plugin.mts";

const plugin = new Plugin<string[]>({
  state: () => [],
  executor: {
    describe: (_, tools) => ({ language: "words", guide: `${tools.length} tools` }),
    async execute(cell) {
      const { source, session: { values } } = cell;
      if (source === "ask") {
        const [one, two] = await cell.callTools(["a", "b"].map((text) => ({ name: "note", args: { text } })));
        const more = [Math.floor((await cell.now()) / 1000), (await cell.random()).length, (await cell.history()).length, cell.tools.length];
        return { printed: [one.text, two.text, ...more].join(" ") };
      }
      values.set(source, `${values.get(source) ?? ""}${source};`);
      return { printed: values.get(source), changed: [source] };
    },
    snapshot: ({ values }) => ({
      changed: Object.fromEntries([...values].map(([name, text]) => [name, Buffer.from(text)])),
      globals: [...values].map(([name, text]) => ({ name, type: "text", size: text.length })),
    }),
    restore({ values: held }, values) {
      held.clear();
      for (const [name, data] of Object.entries(values)) held.set(name, Buffer.from(data).toString());
    },
  },
});

function note(session: Session<string[]>, text: string): void {
  session.change((notes) => {
    notes.push(text);
    session.artifacts.set("all", Buffer.from(notes.join("\n")));
  });
}

plugin.tool("note", async (call, args) => {
  const text: string = args.text ?? "";
  switch (args.mode) {
    case "print":
      console.log('{"not":"a message"}');
      execFileSync("echo", ['{"nor":"this"}']);
      break;
    case "raise":
      throw new Error("boom");
    case "wait":
      call.progress("waiting");
      await new Promise((resolve) => call.signal.addEventListener("abort", resolve));
      note(call.session, "cancelled");
      return "stopped";
    case "host":
      try {
        return JSON.stringify(await call.host(text, args.params));
      } catch (e) {
        if (e instanceof HostError) return `refused: ${e.kind}`;
        throw e;
      }
    case "grow":
      call.session.values.set("grown", true);
      call.session.toolsChanged();
      break;
    case "bulk":
      call.session.artifacts.set("bulk", new Uint8Array(3 << 20));
      break;
    case "size":
      return String(call.session.artifacts.get("bulk")?.length);
    case "finish":
      return new Result(succeed("done"), { kind: "finish", value: { n: 1 } });
  }
  call.progress("noting");
  note(call.session, text);
  return text;
});
plugin.prepare("note", (_, args) => ({ ...args, text: (args.text ?? "").trim() }));
plugin.toolList((session) =>
  ["note", ...(session.values.has("grown") ? ["grown"] : [])].map((name) => ({ name, description: name })),
);

plugin.operation("notes.list", (call) => call.session.state);
for (const name of ["notes.add", "notes.work"]) {
  plugin.operation(name, (call, args) => {
    note(call.session, JSON.stringify(args));
    return new Outcome(call.session.state.length, [{ type: "noted", body: args }]);
  });
}

plugin.hook("prompt", (call) => `${call.session.state.length} notes`);
plugin.hook("beforeTurn", (_, context) => {
  if (JSON.stringify(context.input)?.includes("curfew")) return abort("curfew", "go to bed");
});
plugin.hook("beforeToolCall", (_, context) => {
  const args = JSON.stringify(context.args);
  if (args.includes("secret")) return replaceArgs({ text: "masked" });
  if (args.includes("forbidden")) return [deny("no", "forbidden")];
});
for (const name of ["afterToolCall", "checkpoint", "afterTurn"] as const) plugin.hook(name, () => trace("seen"));
plugin.task("build", async (call, task) => {
  const told = { taskId: task.taskId, name: "seen", key: "once", payload: { n: 1 } };
  await call.host("taskTell", told);
  await call.host("taskTell", told);
  return { attempt: task.attempt, payload: task.spec.payload };
});
plugin.hook("catalog", ({ session }) => (session.state.length > 0 ? ["hidden", "spare"] : "hidden"));
plugin.hook("projectProse", (_, { text }) => text.replaceAll("<code>", ""));
plugin.hook("assistantStream", async (_, chunk) => chunk.text.toUpperCase());
for (const name of ["event", "streamFinished", "assistantResponse", "projectToolResult", "configChanged", "transformContext", "compact"] as const) {
  plugin.hook(name, () => undefined);
}

plugin.run();
