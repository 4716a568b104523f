import { realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";

/** resolveInside resolves a path relative to cwd. It returns undefined if the file, after resolving symbolic links, is outside all folders. */
export function resolveInside(folders: readonly string[], cwd: string, path: string): string | undefined {
  const file = resolve(cwd, path);
  return folders.some((folder) => isBelow(realPathOf(folder), realPathOf(file))) ? file : undefined;
}

/** realPathOf resolves symbolic links. It also accepts a path whose last parts do not exist. */
function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const above = dirname(path);
    return above === path ? path : join(realPathOf(above), basename(path));
  }
}

function isBelow(folder: string, file: string): boolean {
  const path = relative(folder, file);
  return path !== ".." && !path.startsWith(`..${sep}`) && !isAbsolute(path);
}
