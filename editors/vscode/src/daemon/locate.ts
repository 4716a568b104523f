import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";

/** SearchPlaces are the places to look for lashd. */
export interface SearchPlaces {
  /** the setting lashd.path */
  setting: string;
  /** directory of the unpacked lashd of the extension; undefined if it has none */
  bundled: string | undefined;
  /** the environment variable PATH */
  path: string;
  windows: boolean;
}

/** Location is the program to run, or the reason why there is none. */
export type Location = { command: string } | { problem: string };

/** locate finds lashd by the setting, in the extension, or in PATH. If the setting is wrong, it does not fall back to the others. */
export function locate(places: SearchPlaces): Location {
  if (places.setting !== "") {
    return fromSetting(places.setting);
  }
  const name = places.windows ? "lashd.exe" : "lashd";
  const dirs = [...(places.bundled === undefined ? [] : [places.bundled]), ...places.path.split(delimiter).filter(isAbsolute)];
  const command = dirs.map((dir) => join(dir, name)).find(isExecutable);
  return command ? { command } : { problem: "lashd was not found in the extension or in PATH. Install lashd, or set its path in the setting lashd.path." };
}

function fromSetting(path: string): Location {
  if (!isAbsolute(path)) {
    return { problem: `The setting lashd.path is "${path}". It must be an absolute path.` };
  }
  return isExecutable(path) ? { command: path } : { problem: `The setting lashd.path is "${path}", which is not an executable file.` };
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
