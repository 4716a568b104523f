import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Frame } from "playwright-core";

/** Violation is a rule of axe that elements of a page break. */
export interface Violation {
  id: string;
  nodes: string[];
}

interface Axe {
  run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }>;
}

/** violations runs axe in a frame. It throws if axe finds hardly anything to check. The content security policy of a page does not apply to it. */
export async function violations(frame: Frame): Promise<Violation[]> {
  await frame.evaluate(readFileSync(resolve("node_modules/axe-core/axe.min.js"), "utf8"));
  const checked = await frame.evaluate(() => document.querySelectorAll("body *").length);
  if (checked < 20) {
    throw new Error(`the page has only ${checked} elements`);
  }
  return frame.evaluate(async () => (await (window as never as { axe: Axe }).axe.run()).violations.map(({ id, nodes }) => ({ id, nodes: nodes.map(({ html }) => html.slice(0, 200)) })));
}
