import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { dropFile, pastePicture, patienceMs } from "../ui/browser";
import { titleButton } from "../ui/diffEditor";
import { Goals } from "../ui/goals";
import { McpServer } from "../ui/mcpServer";
import { Camera, plain } from "./camera";

const total = "export function total(prices: number[]): number {\n  const sum = prices.reduce((a, b) => a + b, 0);\n  return sum;\n}\n";

const cell = `<starlark>
paths = tools.glob("**/*.ts").unwrap()["paths"]
results = parallel([tools.read.later(path, plain=True) for path in paths])
print(max([(r.value["lastLine"], path) for r, path in zip(results, paths) if r.ok]))
</starlark>`;

const script = {
  models: ["demo"],
  turns: [
    { match: { lastUserContains: "Write the message of a git commit" }, replies: [{ text: "cart: raise the discount\n\nThe autumn sale begins on Monday." }] },
    { match: { lastUserContains: "longest" }, replies: [{ text: `I'll measure all of them in one cell.\n${cell}\n` }, { text: "`cart/total.ts` is the longest file, with 4 lines." }] },
    { match: { lastUserContains: "server" }, replies: [{ text: "I'll start it in the background.", toolCalls: [{ name: "start_command", args: { command: "echo ready on http://localhost:5173; sleep 600", label: "development server" } }] }, { text: "The server runs in the background." }] },
  ],
  otherwise: { replies: [{ text: "Done.", usage: { input: 5100, output: 100 } }] },
};

/** foreign is a session file of Claude Code in a folder. */
function foreign(cwd: string): string {
  const lines = [
    { type: "user", message: { role: "user", content: "Round the total of an order to cents." } },
    { type: "assistant", message: { id: "m1", role: "assistant", content: [{ type: "text", text: "I'll look at how the total is computed." }] } },
    { type: "assistant", message: { id: "m1", role: "assistant", content: [{ type: "tool_use", id: "t1", name: "Read", input: { file_path: `${cwd}/cart/total.ts` } }] } },
    { type: "user", message: { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: total }] } },
    { type: "assistant", message: { id: "m2", role: "assistant", content: [{ type: "text", text: "The sum needs one rounding at the end: `Math.round(sum * 100) / 100`. Shall I add it?" }] } },
  ];
  const of = (at: number) => ({ uuid: `u${at}`, parentUuid: at > 0 ? `u${at - 1}` : null, isSidechain: false, cwd, sessionId: "5c6e7f80-1111-4111-8111-111111111111", version: "2.1.4", timestamp: `2026-01-02T03:04:0${at}.000Z` });
  return lines.map((line, at) => `${JSON.stringify({ ...of(at), ...line })}\n`).join("");
}

/** Renews further pictures in docs/images. Run it with FLOWS=pictures scripts/test-editor. */
describe("more pictures", function () {
  this.timeout(6 * patienceMs);
  const code = new Goals();
  const camera = new Camera(code);
  const server = new McpServer(false);
  const git = (...args: string[]) => spawnSync("git", ["-c", "user.name=t", "-c", "user.email=t@t.test", ...args], { cwd: code.work });
  const pane = (title: string) => code.page.locator(`.pane-header[aria-label="${title} Section"]`);
  const row = (name: RegExp) => code.page.getByRole("treeitem", { name }).first();

  before(async () => {
    code.write("config/lashd/plugins/mcp/.mcp.json", JSON.stringify({ mcpServers: { docs: { type: "http", url: await server.start() } } }));
    code.write("home/AGENTS.md", "Answer in British English.\n");
    code.write("work/AGENTS.md", "Use whole words in names.\n");
    code.write("work/cart/discount.ts", "export const discount = 0.1;\n");
    code.write("work/cart/total.ts", total);
    code.write("work/readme.md", "# The shop\n");
    code.write("config/lashd/plugins/team/skills/tidy/SKILL.md", "---\ndescription: Tidy the imports\n---\nSort the imports by name.\n");
    code.write("config/lashd/plugins/team/commands/changelog.md", "---\ndescription: Write the changelog\nargument-hint: version\n---\nWrite what changed in $1.\n");
    git("init", "-q");
    git("add", ".");
    git("commit", "-qm", "cart: add a discount");
    await code.start(script, { settings: plain });
    await camera.dark();
  });
  after(async () => {
    server.close();
    await code.close();
  });

  it("resources of an MCP server", async () => {
    await code.newSession();
    await code.field.pressSequentially("What does @docs:doc://guide say about @docs:");
    await code.chat.getByRole("option", { name: /^The guide/ }).waitFor();
    await code.chat.locator(".chip").waitFor();
    await camera.both("resources", "resources-light");
    await code.field.fill("");
  });

  it("MCP servers", async () => {
    await code.run("lashd: MCP Servers...");
    await code.page.locator(".quick-input-list .monaco-list-row", { hasText: "docs" }).hover();
    await camera.picture("mcp");
    await code.page.keyboard.press("Escape");
  });

  it("rules and instructions", async () => {
    for (const rule of [{ action: "allow", command: "npm test" }, { action: "deny", path: "**/.env" }]) {
      code.call("rule/add", { level: "workspace", rule, cwd: code.work });
    }
    await code.run("lashd: Rules...");
    await code.page.locator(".quick-input-list .monaco-list-row", { hasText: "npm test" }).waitFor();
    await camera.picture("rules");
    await code.page.keyboard.press("Escape");
    await code.run("lashd: Instructions...");
    await code.page.locator(".quick-input-list .monaco-list-row", { hasText: "AGENTS.md" }).first().waitFor();
    await camera.picture("instructions");
    await code.page.keyboard.press("Escape");
  });

  it("the commands of a chat", async () => {
    await code.newSession();
    await code.field.fill("/help");
    await code.field.press("Enter");
    await code.page.locator(".quick-input-title", { hasText: "Commands of the chat" }).waitFor();
    await camera.picture("help");
    await code.page.keyboard.press("Escape");
  });

  it("a code cell", async () => {
    await code.run("lashd: New Session with Driver...");
    await code.choose("Code cells");
    await code.say("Which file is the longest?");
    await code.answered("is the longest file");
    await camera.both("cells", "cells-light");
  });

  it("dropped files", async () => {
    await code.newSession();
    await dropFile(code.field, "requirements.txt", "Orders over 100 ship for free.\n");
    await dropFile(code.field, "build.log", "error: total.ts(3,10): number expected\n".repeat(2500));
    await pastePicture(code.field, "mockup.png");
    await code.chat.locator(".chip").nth(2).waitFor();
    await code.field.fill("Change the page of the cart as in the mockup.");
    await code.field.dispatchEvent("dragover"); // another file is on its way
    await camera.picture("drop");
    await code.field.dispatchEvent("drop");
    await code.field.fill("");
  });

  it("an imported session", async () => {
    code.write("session.jsonl", foreign(code.work));
    code.lash("session", "import", join(code.dir, "session.jsonl"));
    await code.run("lashd: Find Session...");
    await code.choose("Round the total");
    await code.answered("one rounding at the end");
    await camera.picture("import");
  });

  it("the review of a folder's .mcp.json", async () => {
    await code.run("View: Close All Editors");
    await code.newSession();
    code.write("work/tools/tickets.sh", "# Serves the tickets of the shop.\n");
    code.write("work/.mcp.json", `${JSON.stringify({ mcpServers: { tickets: { command: "sh", args: ["tools/tickets.sh"] } } }, undefined, 2)}\n`);
    await pane("Plugins and Tools").click();
    await code.menu(row(/^\.mcp\.json \(tickets\)/), "Review and Trust");
    await titleButton(code.page, "Trust These Files").waitFor();
    await code.page.locator(".monaco-editor .view-line", { hasText: "Serves" }).waitFor();
    await camera.picture("trust");
    await code.page.keyboard.press("Control+w");
    await pane("Plugins and Tools").click();
  });

  it("the set-up of a provider", async () => {
    await code.run("lashd: Set Up a Provider...");
    await code.page.locator(".quick-input-list .monaco-list-row", { hasText: "Anthropic" }).first().waitFor();
    await camera.picture("providers");
    await code.page.keyboard.press("Escape");
  });

  it("the message of a commit", async () => {
    code.write("work/cart/discount.ts", "export const discount = 0.15;\n");
    git("add", "cart");
    await code.run("Git: Refresh");
    await code.run("lashd: Write Commit Message");
    await code.page.locator('.activitybar .action-label[aria-label^="Source Control"]').click({ force: true }); // its badge covers it
    await code.page.locator(".scm-editor .view-line", { hasText: "cart: raise the discount" }).waitFor();
    await camera.picture("commit");
    await code.view();
  });

  it("an attached picture, and what fills the context window", async () => {
    await code.newSession();
    await pastePicture(code.field, "page.png");
    await code.chat.locator(".chip .thumb").waitFor();
    await code.say("Which colors does this page use?");
    await code.answered("Done.");
    await code.chat.locator(".meter").click();
    await code.chat.locator("#context th").first().waitFor();
    await camera.picture("context");
    await code.chat.locator("#context").getByRole("button", { name: "Close" }).click();
  });

  it("a denial with a reason, a notification, a background task, and its trace", async () => {
    await code.ask("Start the development server.");
    await code.chat.getByRole("button", { name: "More\u2026" }).click();
    await code.chat.getByRole("button", { name: "Deny with a reason" }).click();
    await code.chat.locator("#asked textarea").fill("Use port 8080; another program has 5173.");
    await camera.picture("reason");
    await code.page.keyboard.press("Escape");
    await code.run("lashd: New Session");
    await code.toast("Start the development server").first().waitFor();
    await camera.picture("notification");
    await code.toast("Start the development server").first().getByRole("link", { name: "Show" }).click();
    await code.chat.getByRole("button", { name: "Allow once" }).click();
    await code.answered("The server runs");
    await pane("Tasks and Monitors").click();
    await row(/^development server/).click();
    await code.page.locator(".part.panel .xterm-rows").getByText("ready on").waitFor();
    await camera.picture("tasks");
    await pane("Tasks and Monitors").click();
    await code.run("View: Hide Panel");
    await code.chat.locator(".row.end").hover();
    await code.chat.getByRole("button", { name: "Trace" }).click();
    await code.page.locator(".monaco-editor .view-line", { hasText: "model call 1" }).first().waitFor();
    await camera.picture("trace");
    await code.page.keyboard.press("Control+w");
    await code.answered("The server runs"); // the page of the chat takes the focus before that
  });

  it("a snapshot", async () => {
    await code.run("lashd: Take Snapshot...");
    await code.quickInput.fill("before the redesign");
    await code.page.keyboard.press("Enter");
    await row(/^before the redesign/).waitFor();
    await code.run("Notifications: Clear All Notifications");
    await code.say("Redesign the cart.");
    await code.answered("Done.");
    await row(/^before the redesign/).hover();
    await row(/^before the redesign/).getByRole("button", { name: "Restore Snapshot" }).click();
    await code.page.locator(".notification-toast", { hasText: "will be hidden" }).waitFor();
    await camera.picture("snapshots");
    await code.run("Notifications: Clear All Notifications");
    await pane("Snapshots").click();
  });
});
