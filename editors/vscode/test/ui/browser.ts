import { strict as assert } from "node:assert";
import { chromium, type Browser } from "playwright-core";

export const patienceMs = Number(process.env.PATIENCE ?? 60_000);

/** need returns an environment variable that scripts/test-editor sets. It throws if it is not set. */
export const need = (name: string): string => {
  const value = process.env[name];
  if (!value) {
    throw new Error(`${name} is not set: run scripts/test-editor`);
  }
  return value;
};

/** launch starts Chromium without background network requests. */
export function launch(): Promise<Browser> {
  const quiet = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  return chromium.launch({ executablePath: need("CHROMIUM"), args: ["--no-sandbox", ...quiet] });
}

/** until waits for a condition. An error of the condition counts as false. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + patienceMs;
  for (;;) {
    try {
      if (await holds()) {
        return;
      }
    } catch {
      // not yet
    }
    assert.ok(Date.now() < end, `the condition was still false after ${patienceMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
