import { realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";

/** inside is the file that a path from a directory leads to, if it is in one of the folders, wherever links lead. */
export function inside(folders: readonly string[], cwd: string, path: string): string | undefined {
  const file = resolve(cwd, path);
  return folders.some((folder) => below(realOf(folder), realOf(file))) ? file : undefined;
}

/** The path without links, as far as there is something. */
function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const above = dirname(path);
    return above === path ? path : join(realOf(above), basename(path));
  }
}

function below(folder: string, file: string): boolean {
  const path = relative(folder, file);
  return path !== ".." && !path.startsWith(`..${sep}`) && !isAbsolute(path);
}
