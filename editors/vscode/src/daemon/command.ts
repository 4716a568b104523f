import { spawn } from "node:child_process";
import type { Program } from "./link";

/** The largest output of a command that is kept, in characters. */
const maxOutput = 1 << 20;

/**
 * runCommand runs a lashd command and returns its stdout. It passes the input on stdin, where no other process can see it, and never logs
 * it: the input may be an API key. An error has the last line of stderr.
 */
export function runCommand({ command, env }: Program, args: string[], input = ""): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { env, stdio: "pipe", windowsHide: true });
    let out = "";
    let errors = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (out = (out + text).slice(0, maxOutput)));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (errors = (errors + text).slice(-maxOutput)));
    child.stdin.on("error", () => undefined); // the exit code reports the failure
    child.once("error", reject);
    child.once("close", (code) => (code === 0 ? resolve(out) : reject(new Error(lastLine(errors) || `lashd ${args[0] ?? ""} failed`))));
    child.stdin.end(input);
  });
}

function lastLine(text: string): string {
  return (text.trim().split("\n").at(-1) ?? "").replace(/^lashd: /, "");
}
