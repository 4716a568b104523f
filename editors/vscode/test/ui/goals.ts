import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Suite } from "mocha";
import type { Locator } from "playwright-core";
import type { Decision, DecisionListResult } from "../../src/protocol";
import { patienceMs } from "./browser";
import { story } from "./script";
import { Workbench } from "./workbench";

const long = `echo ${"word ".repeat(40)}end > long-output.txt`;
const echo = { toolCalls: [{ name: "shell", args: { command: "echo one" } }] };
const adds = (name: string) => `*** Add File: ${name}.ts\n+export const ${name} = 1;\n`;

const script = {
  models: ["demo"],
  turns: [
    { match: { lastUserContains: "where is it" }, replies: [{ text: "It is in `src/two.txt:2`, and readme.txt:1 names it." }] },
    { match: { lastUserContains: "twice" }, replies: [echo, echo, { text: "Both ran." }] },
    { match: { lastUserContains: "long command" }, replies: [{ toolCalls: [{ name: "shell", args: { command: long } }] }, { text: "It ran." }] },
    { match: { lastUserContains: "story" }, replies: [{ text: story, chunkSize: 3, delayMs: 60 }] },
    { match: { lastUserContains: "think" }, replies: [{ reasoning: "Because of this.", text: "So it is." }] },
    { match: { lastUserContains: "two files" }, replies: [{ toolCalls: [{ name: "patch", args: { patch: `*** Begin Patch\n${adds("one")}${adds("two")}*** End Patch` } }] }, { text: "Written." }] },
    { match: { lastUserContains: "markdown" }, replies: [{ text: "# Result\n\n> quoted\n\n- [x] first\n- [ ] second\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```go\nfunc main() {}\n```\n" }] },
  ],
  otherwise: { replies: [{ text: "Hello!", usage: { input: 1500, output: 100 } }] },
};

/** Goals is a workbench for tests of what users want to do, each in a session of its own. */
export class Goals extends Workbench {
  /** open starts the workbench with some files. */
  async open(): Promise<void> {
    this.write("work/src/one.txt", "1\n");
    this.write("work/src/two.txt", "first\nsecond\n");
    this.write("work/wrong.json", '{"a": }\n');
    await this.start(script);
  }

  /** reset denies open questions and closes editors and notifications. */
  async reset(): Promise<void> {
    this.decisions().forEach(({ decisionId }) => this.call("decision/respond", { decisionId, choice: "reject" }));
    await this.run("View: Close All Editors");
    await this.run("Notifications: Clear All Notifications");
    ["one.ts", "two.ts", "long-output.txt"].forEach((name) => rmSync(join(this.work, name), { force: true }));
  }

  decisions(): Decision[] {
    return this.call<DecisionListResult>("decision/list", {}).data;
  }

  get field(): Locator {
    return this.chat.locator("#composer textarea");
  }

  get card(): Locator {
    return this.chat.locator("#asked .card");
  }

  /** ask starts a session with an input. */
  async ask(text: string): Promise<void> {
    await this.newSession();
    await this.say(text);
  }

  /** answered waits for the end of an answer that contains a text. */
  async answered(text: string): Promise<void> {
    await this.chat.locator(".agentMessage:not(.live)", { hasText: text }).last().waitFor();
  }

  toast(text: string): Locator {
    return this.page.locator(".notification-toast", { hasText: text });
  }

  /** mention types @ with a word and chooses what it completes to. */
  async mention(typed: string, option: RegExp): Promise<void> {
    await this.field.pressSequentially(`look @${typed}`);
    await this.chat.getByRole("option", { name: option }).click();
  }
}

/** goals gives a suite a workbench. Each test begins without editors, notifications and open questions. prepare runs before the workbench opens. */
export function goals(suite: Suite, prepare: (code: Goals) => void | Promise<void> = () => undefined): Goals {
  suite.timeout(3 * patienceMs);
  const code = new Goals();
  before(async () => {
    await prepare(code);
    await code.open();
  });
  afterEach(async function () {
    await code.shot(`${this.currentTest?.state ?? "none"} ${this.currentTest?.title ?? ""}`);
    await code.page.keyboard.press("Escape"); // a list that the test left open
    await code.reset();
  });
  after(() => code.close());
  return code;
}
