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
