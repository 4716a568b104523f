import { strict as assert } from "node:assert";

/** until waits for a condition. */
export async function until(what: string, holds: () => unknown): Promise<void> {
  for (const end = Date.now() + 25_000; !holds(); ) {
    assert.ok(Date.now() < end, what);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
