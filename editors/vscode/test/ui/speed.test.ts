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
  });
  afterEach(async function () {
    await code.shot(`${this.currentTest?.state ?? "none"} ${this.currentTest?.title ?? ""}`);
  });
  after(() => code.close());

  it("opens, and scrolls to its start and back", async () => {
    await code.view();
    const opened: number[] = [];
    for (let time = 0; time < 5; time++) {
      const entry = code.page.getByRole("treeitem", { name: /^long session/ }).first();
      await entry.waitFor();
      const began = performance.now();
      await entry.click();
      await code.chat.getByText(`Answer ${items - 1} `).waitFor();
      opened.push(Math.round(performance.now() - began));
      await code.run("View: Close All Editors");
      await code.page.locator("iframe.webview.ready").waitFor({ state: "detached" });
      await code.view();
    }
    console.log(`      opened in ${opened.join(", ")} ms`);
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
