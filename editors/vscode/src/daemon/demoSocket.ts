import { createHash } from "node:crypto";
import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** demoSocket returns the socket of the demo in a data directory, which differs between profiles. A socket in the directory itself could exceed the length limit of socket paths. */
export function demoSocket(home: string, runtimeDir = process.env.XDG_RUNTIME_DIR): string {
  const dir = join(runtimeDir ?? join(tmpdir(), `lashd-${process.getuid?.() ?? "user"}`), "lashd-demo");
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  return join(dir, `${createHash("sha256").update(home).digest("hex").slice(0, 12)}.sock`);
}
