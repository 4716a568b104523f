import { readdirSync, readFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";

/** withoutKeys returns the environment without API keys. */
export function withoutKeys(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/_API_KEY$|^AWS_BEARER_TOKEN/.test(name)));
}

/** freePort returns a port of this machine that no program uses. */
export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

/** daemonsOf returns the processes that serve a data directory. */
export function daemonsOf(home: string): string[] {
  const serves = (pid: string) => {
    try {
      const args = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      return args.includes(home) && args.includes("serve");
    } catch {
      return false; // it has ended
    }
  };
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && serves(name));
}
