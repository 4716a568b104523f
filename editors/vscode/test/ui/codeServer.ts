import { join } from "node:path";
import { need, until } from "./browser";

/** codeServer returns the command line of code-server with its files in a directory. */
export function codeServer(dir: string, ...args: string[]): [string, string[]] {
  const server = join(need("CODE_SERVER"), "node_modules", "code-server", "out", "node", "entry.js");
  const node = join(need("CODE_SERVER"), "node_modules", `node-${process.platform}-${process.arch}`, "bin", "node");
  return [node, [server, "--config", join(dir, "cfg.yaml"), "--user-data-dir", join(dir, "ud"), "--extensions-dir", join(dir, "ext"), ...args]];
}

/** answers waits until a code-server answers at a port of this machine. */
export async function answers(port: number): Promise<void> {
  await until(async () => (await fetch(`http://127.0.0.1:${port}/healthz`)).ok);
}
