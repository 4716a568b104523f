import { strict as assert } from "node:assert";
import { chromium, type Browser } from "playwright-core";

export const patience = Number(process.env.PATIENCE ?? 60_000);

/** need is a variable of the environment that scripts/test-editor sets. */
export const need = (name: string): string => {
  const value = process.env[name];
  if (!value) {
    throw new Error(`${name} is not set: run scripts/test-editor`);
  }
  return value;
};

/** launch starts a Chromium that talks to nobody by itself. */
export function launch(): Promise<Browser> {
  const quiet = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  return chromium.launch({ executablePath: need("CHROMIUM"), args: ["--no-sandbox", ...quiet] });
}

/** until waits for something to become true. What is thrown meanwhile is not there yet. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + patience;
  for (;;) {
    try {
      if (await holds()) {
        return;
      }
    } catch {
      // not yet
    }
    assert.ok(Date.now() < end, "it does not come true");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
