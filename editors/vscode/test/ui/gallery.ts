import type { ToWebview } from "../../src/chat/messages";
import { snapshot } from "../../src/model/session";
import type { Decision, Item, QueuedInput, Task } from "../../src/protocol";
import { titled } from "../unit/titles";
import { attached, session } from "../unit/turn";

const turnId = "trn_1";
const item = (n: number, more: Partial<Item>): Item => ({ itemId: `nod_${n}:0`, kind: "agentMessage", status: "completed", atMs: n, turnId, ...more });

const input = (n: number, inputId: string, more: Partial<Item>): Item => item(n, { kind: "userMessage", origin: { kind: "turnInput", inputId }, ...more });
const call = (n: number, tool: string, args: Record<string, string>): Item => item(n, { kind: "toolCall", callId: `c${n}`, tool, args, title: titled(tool, args.command ?? args.pattern ?? args.path, args.pattern && `in ${args.path}`), output: { status: "success", text: "ok" } });

/** picture is a PNG of 4 by 3 pixels. */
const picture = "iVBORw0KGgoAAAANSUhEUgAAAAQAAAADCAIAAAA7ljmRAAAAE0lEQVR4nGM4YWMDRGDiBANODgAktg8BwNmTpwAAAABJRU5ErkJggg==";

const server: Task = {
  taskId: "tsk_1", sessionId: "ses_1", state: "running", attempt: 1, ordinal: 1, createdAtMs: 1, updatedAtMs: 1,
  spec: { kind: "command", recovery: "ownerBound", label: "the server", command: { script: "npm run dev" } }, origin: { sessionId: "ses_1", turnId },
};

const answer = `# The total of an order

The loop in \`src/order/total.ts:12\` starts at **1** and skips the first price. See src/order/total.test.ts:30 and [the docs](https://example.com).

> Prices are in cents.

- [x] read the code
- [ ] fix the loop

| file | change |
|---|---|
| total.ts | start at 0 |

\`\`\`ts
// adds all prices
export function total(prices: number[]): number {
  return prices.reduce((sum, price) => sum + price, 0);
}
\`\`\`

\`\`\`diff
diff --git a/total.ts b/total.ts
index 1a2b3c4..5d6e7f8 100644
--- a/total.ts
+++ b/total.ts
@@ -3,3 +3,3 @@ export function total
   let sum = 0;
-  for (let i = 1;
+  for (let i = 0;
\`\`\`
`;

const change = { path: "src/order/total.ts", added: 1, removed: 1, diff: "--- a/x\n+++ b/x\n@@ -3,3 +3,3 @@\n   let sum = 0;\n-  for (let i = 1; i < n; i++) {\n+  for (let i = 0; i < n; i++) {\n     sum += prices[i];\n" };

/** gallery is a conversation with every kind of item. */
const gallery: Item[] = [
  input(1, "inp_1", { text: "File: src/order/total.ts:12-14\n```\nlet sum = 0;\nfor (let i = 1; i < n; i++) {\n  sum += prices[i];\n```\n" }),
  input(101, "inp_1", { attachment: { name: "total.png", type: "image/png", data: picture } }),
  input(102, "inp_1", { text: "The total of an order is wrong. Fix it, with a test." }),
  item(2, { kind: "reasoning", text: "The loop starts at 1." }),
  call(103, "list", { path: "src" }),
  call(104, "read", { path: "src/order/total.ts" }),
  call(105, "read", { path: "src/order/total.test.ts" }),
  call(106, "grep", { pattern: "total\\(", path: "src" }),
  item(3, { text: answer }),
  item(4, { kind: "toolCall", callId: "c1", tool: "edit", title: titled("edit", change.path), args: { path: change.path }, decision: { mode: "allow", why: { by: "mode", text: "The mode allows edits." } }, output: { status: "success", change } }),
  item(5, { kind: "toolCall", callId: "c2", tool: "shell", title: titled("shell", "npm test -- total"), status: "failed", args: { command: "npm test -- total" }, output: { status: "failure", text: "1 test failed", refusal: { what: "The command has no network.", mode: "workspace", retry: { outside: true } } } }),
  item(107, { kind: "toolCall", callId: "c7", tool: "edit", title: titled("edit", "src/legacy/total.ts"), status: "failed", args: { path: "src/legacy/total.ts", old: "a", new: "b" }, decision: { mode: "deny", choice: "reject", by: "cli_1", reason: "We still need src/legacy until June.", why: { by: "mode", text: "The mode asks." } }, output: { status: "failure", text: "The call was not allowed." } }),
  { ...call(108, "start_command", { command: "npm run dev", label: "the server" }), output: { status: "success", value: { task: "tsk_1" } } },
  call(109, "mcp__docs__search", { query: "prices" }),
  item(110, { kind: "toolCall", callId: "c110", tool: "read", title: titled("read", "src/order/a-module-with-a-long-name/prices.ts"), status: "inProgress", args: { path: "src/order/a-module-with-a-long-name/prices.ts" } }),
  input(6, "inp_2", { text: "Use reduce." }),
  item(7, { kind: "codeCell", status: "failed", language: "starlark", text: "for path in tools.glob(\"*.ts\"):\n    print(path)\noops(1)", cell: { printed: "a.ts\n", error: "undefined: oops", position: { line: 3, column: 1 }, changed: ["path"], durationMs: 1250, calls: [{ callId: "k", index: 1, tool: "glob", args: { pattern: "*.ts" }, status: "completed", durationMs: 3, summary: "a.ts" }] } }),
  item(8, { kind: "toolCall", callId: "c3", tool: "update_plan", title: titled("update_plan"), args: { steps: [{ text: "look", status: "completed" }, { text: "fix", status: "inProgress" }, { text: "test", status: "pending" }] }, output: { status: "success", text: "ok" } }),
  item(9, { kind: "notice", text: "The model changed." }),
  item(10, { kind: "compaction" }),
  item(11, { kind: "toolCall", callId: "c4", tool: "shell", title: titled("shell", "for file in src/order/*.test.ts; do npm test -- \"$file\"; done"), args: { command: "for file in src/order/*.test.ts; do npm test -- \"$file\"; done" }, output: { status: "success", text: "ok" }, durationMs: 2500 }),
];

const hunk = (start: number, text: string) => ({ oldStart: start, oldLines: 2, newStart: start, newLines: 2, text });

const base = { sessionId: "ses_1", choices: ["allowOnce", "allowSession", "allowAlways", "reject"], default: "reject", openedAtMs: 1, deadlineAtMs: 600_001 } as const;

export const editQuestion: Decision = {
  ...base, decisionId: "dec_1", kind: "approval", prompt: "May it?", choices: [...base.choices], call: { callId: "c", name: "edit", args: { path: "total.ts" } },
  detail: { files: [{ path: "src/order/total.ts", kind: "change", added: 2, removed: 2, hunks: [hunk(3, "   let sum = 0;\n-  let i = 1;\n+  let i = 0;\n"), hunk(19, "-  return 0;\n+  return sum;\n")] }], why: { by: "mode", text: "The approval mode asks before changes." }, editable: true },
};

export const commandQuestion: Decision = {
  ...base, decisionId: "dec_2", kind: "approval", prompt: "May it?", choices: [...base.choices], call: { callId: "c", name: "shell", args: { command: "npm publish" } },
  detail: { command: { command: "npm publish --access public", dir: "/work", outside: true }, hosts: ["registry.example"], why: { by: "outside", text: "The command leaves the sandbox." }, editable: true, widths: [{ text: "commands that begin with npm publish", rule: { action: "allow" } }] },
};

const queued = (n: number, state: QueuedInput["state"], text: string): QueuedInput => ({ inputId: `inp_q${n}`, turnId: `trn_q${n}`, state, input: [{ type: "text", text }], atMs: 1 });

/** conversation shows the gallery with what is below it. */
export function conversation(decisions: Decision[] = [editQuestion]): ToWebview {
  const config = { ...session.config, model: { ...session.config.model, contextWindow: 10_000, reasoning: { efforts: ["low", "high"] }, effort: "high" } };
  const view = {
    ...snapshot({ ...attached, session: { ...session, title: "Fix the total", config }, items: gallery }), decisions, turnId: "trn_2", tasks: [server],
    queue: [queued(1, "pendingActive", "Keep the types."), queued(2, "queued", "Then update the changelog.")],
    ends: { trn_1: { turnId, outcome: { kind: "providerError" as const }, message: "no API key for openai", code: "missing_key" } },
    context: { input: 7000, cacheRead: 0, cacheWrite: 0, output: 500, reasoning: 0 }, total: { input: 7000, cacheRead: 0, cacheWrite: 0, output: 500, reasoning: 0, cost: 4_000_000 },
  };
  return { type: "reset", view, options: { sendOnEnter: true, showReasoning: true }, connected: true, left: { dec_1: 581_000 } };
}

/** empty shows a new chat. */
export const empty: ToWebview = { type: "reset", view: snapshot(attached), options: { sendOnEnter: true, showReasoning: false }, connected: true, left: {} };

export const recent: ToWebview = { type: "recent", sessions: [{ sessionId: "ses_2", title: "Explain the build", age: "2 h" }, { sessionId: "ses_3", title: "Upgrade the parser and every module that uses it, with their tests", age: "3 d" }] };
