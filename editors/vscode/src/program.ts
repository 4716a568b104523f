import { mkdirSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import * as vscode from "vscode";
import { locate } from "./daemon/locate";
import type { Program } from "./daemon/link";

/** program is the lashd to run, with the data directory to use. Only the user's settings say which, never a workspace's. */
export function program(context: vscode.ExtensionContext, demo: boolean): Program {
  const config = vscode.workspace.getConfiguration("lashd");
  const found = locate({
    setting: config.get("path", ""),
    extensionDir: context.extensionPath,
    path: process.env.PATH ?? "",
    windows: process.platform === "win32",
  });
  if ("problem" in found) {
    throw new Error(found.problem);
  }
  const home = demo ? demoHome(context) : config.get("home", "");
  return { command: found.command, args: ["stdio"], env: { ...process.env, ...(home && { LASHD_HOME: home }), ...(demo && { LASHD_SOCKET: demoSocket() }) } };
}

/** configFile is the config.toml of a lashd with this environment. */
export function configFile({ LASHD_HOME, XDG_DATA_HOME }: NodeJS.ProcessEnv): string {
  return join(LASHD_HOME || join(XDG_DATA_HOME || join(homedir(), ".local", "share"), "lashd"), "config.toml");
}

/** A data directory of its own, whose model is a script: nothing of the user's is touched, and no key is needed. */
function demoHome(context: vscode.ExtensionContext): string {
  const dir = join(context.globalStorageUri.fsPath, "demo");
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const script = join(context.extensionPath, "media", "demo.json");
  writeFileSync(join(dir, "config.toml"), `script = ${JSON.stringify(script)}\napproval = "ask"\n`, { mode: 0o600 });
  return dir;
}

// The path of a socket is short: that of a storage of extensions may be too long for it.
function demoSocket(): string {
  const dir = join(process.env.XDG_RUNTIME_DIR ?? join(tmpdir(), `lashd-${process.getuid?.() ?? "user"}`), "lashd-demo");
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  return join(dir, "lashd.sock");
}
