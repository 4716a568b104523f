import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Daemon } from "../../src/daemon/daemon";
import type { Log } from "../../src/daemon/link";

const command = process.env.LASHD ?? "";
if (command === "") {
  throw new Error("LASHD is not set; set it to the path of a lashd program");
}

const logged: string[] = [];
const record = (text: string) => void logged.push(text);
export const log: Log = { debug: record, info: record, warn: record, error: record };

// Runs lashd and forwards its output, until the output contains a word. Then it exits.
const relayScript = `
  const [command, word] = process.argv.slice(1);
  const lashd = require("node:child_process").spawn(command, ["stdio"], { stdio: ["pipe", "pipe", "inherit"] });
  process.stdin.pipe(lashd.stdin);
  lashd.stdout.on("data", (said) => (String(said).includes(word) ? process.exit(5) : process.stdout.write(said)));
  lashd.on("close", () => process.exit(5));
`;

/** Home is a data directory with a scripted model, and a workspace. */
export class Home {
  readonly dir = mkdtempSync(join(tmpdir(), "lashd-"));
  readonly work = join(this.dir, "work"); // outside the data directory, which tools must not use
  private readonly data = join(this.dir, "home");
  private readonly open: Daemon[] = [];

  constructor(script: unknown) {
    mkdirSync(this.work);
    mkdirSync(this.data, { mode: 0o700 });
    writeFileSync(join(this.data, "script.json"), JSON.stringify(script));
    writeFileSync(join(this.data, "config.toml"), `script = ${JSON.stringify(join(this.data, "script.json"))}\napproval = "ask"\n`);
  }

  /** connect opens a connection, as a window does. With dropAt, the first connection breaks before output that contains this word. */
  connect(dropAt?: string): Daemon {
    const env = { ...process.env, LASHD_HOME: this.data };
    let first = dropAt !== undefined;
    const program = () => {
      const relay = { command: process.execPath, args: ["-e", relayScript, command, dropAt ?? ""], env };
      const made = first ? relay : { command, args: ["stdio"], env };
      first = false;
      return made;
    };
    const daemon = new Daemon({ program, version: "test", log });
    this.open.push(daemon);
    daemon.start();
    return daemon;
  }

  /** kill ends the daemon with SIGKILL. */
  async kill(daemon: Daemon): Promise<void> {
    const { pid } = await daemon.call("server/status", {});
    process.kill(pid, "SIGKILL");
  }

  async close(failed: boolean): Promise<void> {
    if (failed) {
      console.log(logged.join("\n"));
    }
    logged.length = 0;
    const [last, ...others] = this.open; // a client that is still connected would restart the daemon
    others.forEach((daemon) => daemon.close());
    await last?.call("shutdown", { daemon: true }).catch(() => undefined);
    last?.close();
    await new Promise((resolve) => setTimeout(resolve, 300)); // wait for the last log lines
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 20 }); // on a slow machine the daemon still writes here for some seconds
  }
}

/** until waits for a condition. It throws after limitMs. */
export async function until(what: string, holds: () => unknown, limitMs = 20_000): Promise<void> {
  const end = Date.now() + limitMs;
  while (!(await holds())) {
    if (Date.now() > end) {
      throw new Error(`${what}: not within ${limitMs} ms`);
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

export const isReady = (daemon: Daemon) => (daemon.state).kind === "ready";
