import { mkdirSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import * as vscode from "vscode";
import { demoSocket } from "./daemon/demoSocket";
import { locate } from "./daemon/locate";
import type { Program } from "./daemon/link";

/**
 * program returns the lashd to run and its data directory. Both come from the user's settings; a workspace cannot set them. bundled is the
 * directory of the unpacked lashd of the extension.
 */
export function program(context: vscode.ExtensionContext, bundled: string | undefined, demo: boolean): Program {
  const config = vscode.workspace.getConfiguration("lashd");
  const found = locate({
    setting: config.get("path", ""),
    bundled,
    path: process.env.PATH ?? "",
    windows: process.platform === "win32",
  });
  if ("problem" in found) {
    throw new Error(found.problem);
  }
  const home = demo ? demoHome(context) : config.get("home", "");
  return { command: found.command, args: ["stdio"], env: { ...process.env, ...(home && { LASHD_HOME: home }), ...(demo && { LASHD_SOCKET: demoSocket(home) }) } };
}

/** configFile returns the path of config.toml for a lashd with this environment. */
export function configFile({ LASHD_HOME, XDG_DATA_HOME }: NodeJS.ProcessEnv): string {
  return join(LASHD_HOME || join(XDG_DATA_HOME || join(homedir(), ".local", "share"), "lashd"), "config.toml");
}

/** demoHome creates a separate data directory with a scripted model and returns its path. The demo needs no API key. */
function demoHome(context: vscode.ExtensionContext): string {
  const dir = join(context.globalStorageUri.fsPath, "demo");
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const script = join(context.extensionPath, "media", "demo.json");
  writeFileSync(join(dir, "config.toml"), `script = ${JSON.stringify(script)}\napproval = "ask"\n`, { mode: 0o600 });
  return dir;
}
