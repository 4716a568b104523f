import { strict as assert } from "node:assert";
import type { SessionNewResult } from "../../src/protocol";
import { patienceMs } from "./browser";
import { script } from "./script";
import { Workbench } from "./workbench";

/** This many items are in the session; each part of it is appended with one request. */
const items = 5000;
const part = 200;

const nodeOf = (n: number) => ({
  message: { role: n % 2 ? "assistant" : "user", parts: [{ kind: "text", text: n % 2 ? `Answer ${n} with *words* and a \`model\`.` : `question ${n}` }] },
});

describe("part13/4 a session of 5,000 items in a real VS Code", function () {
  this.timeout(3 * patienceMs);
  const code = new Workbench();

  before(async () => {
    await code.start(script);
    const { sessionId } = code.call<SessionNewResult>("session/new", { cwd: code.work, title: "long session" });
    for (let n = 0; n < items; n += part) {
      code.call("graph/append", { sessionId, nodes: Array.from({ length: part }, (_, at) => nodeOf(n + at)) });
    }
    const short = code.call<SessionNewResult>("session/new", { cwd: code.work, title: "short session" });
    code.call("graph/append", { sessionId: short.sessionId, nodes: [nodeOf(0), nodeOf(1)] });
  });
  afterEach(async function () {
    await code.shot(`${this.currentTest?.state ?? "none"} ${this.currentTest?.title ?? ""}`);
  });
  after(() => code.close());

  /** opened returns the milliseconds from the click on a session of the tree until a text of it is visible in a new webview. */
  async function opened(title: string, text: string): Promise<number> {
    const entry = code.page.getByRole("treeitem", { name: new RegExp(`^${title}`) }).first();
    await entry.waitFor();
    const began = performance.now();
    await entry.click();
    await code.chat.getByText(text).waitFor();
    const took = performance.now() - began;
    await code.run("View: Close All Editors");
    await code.page.locator("iframe.webview.ready").waitFor({ state: "detached" });
    await code.view();
    return Math.round(took);
  }

  it("opens, and scrolls to its start and back", async () => {
    await code.view();
    const times = { long: [] as number[], short: [] as number[] };
    for (let time = 0; time < 7; time++) {
      times.long.push(await opened("long session", `Answer ${items - 1} `));
      times.short.push(await opened("short session", "Answer 1 "));
    }
    const middle = (all: number[]) => all.toSorted((a, b) => a - b)[all.length >> 1] ?? 0;
    console.log(`      opened in ${times.long.join(", ")} ms, a session of two items in ${times.short.join(", ")} ms`);
    console.log(`      ratio of the medians: ${(middle(times.long) / middle(times.short)).toFixed(2)}`);
    await code.page.getByRole("treeitem", { name: /^long session/ }).first().click();
    await code.chat.getByText(`Answer ${items - 1} `).waitFor();
    const longest = await code.chat.locator("#scroller").evaluate(async (scroller) => {
      const tasks: number[] = [];
      new PerformanceObserver((list) => tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: "longtask" });
      const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
      for (let step = 0; step < 300; step++) {
        scroller.scrollTo(0, scroller.scrollHeight * (1 - step / 300));
        await frame();
      }
      scroller.scrollTo(0, scroller.scrollHeight);
      await frame();
      return tasks.toSorted((a, b) => b - a).slice(0, 5).map(Math.round);
    });
    console.log(`      tasks over 50 ms: ${longest.join(", ") || "none"}`);
    assert.equal(await code.chat.getByText(`Answer ${items - 1} `).isVisible(), true);
  });
});
