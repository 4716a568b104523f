import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";

/** Where to look for lashd. */
export interface Places {
  /** the setting lashd.path */
  setting: string;
  /** that of the extension */
  extensionDir: string;
  /** as the environment has it */
  path: string;
  windows: boolean;
}

/** Found is the program to run, or why there is none. */
export type Found = { command: string } | { problem: string };

/** locate finds lashd: as the setting says, beside the extension, or in PATH. What the setting names is never replaced by another. */
export function locate(places: Places): Found {
  if (places.setting !== "") {
    return named(places.setting);
  }
  const name = places.windows ? "lashd.exe" : "lashd";
  const dirs = [join(places.extensionDir, "bin"), ...places.path.split(delimiter).filter(isAbsolute)];
  const command = dirs.map((dir) => join(dir, name)).find(runnable);
  return command ? { command } : { problem: "lashd was not found in the extension or in PATH. Install lashd, or set its path in the setting lashd.path." };
}

function named(path: string): Found {
  if (!isAbsolute(path)) {
    return { problem: `The setting lashd.path is "${path}". It must be an absolute path.` };
  }
  return runnable(path) ? { command: path } : { problem: `The setting lashd.path is "${path}", which is not an executable file.` };
}

function runnable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
