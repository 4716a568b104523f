import { realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";

/** Folder is an open folder: its path in the editor, and that path without symbolic links. Sessions have paths without links. */
export interface Folder {
  path: string;
  real: string;
}

/** FolderLinks resolves the symbolic links of the open folders, each once: a link that appears later does not move a folder. */
export class FolderLinks {
  private readonly known = new Map<string, Folder>();

  resolve(paths: readonly string[]): Folder[] {
    return paths.map((path) => {
      const folder = this.known.get(path) ?? { path: resolve(path), real: realPathOf(path) };
      this.known.set(path, folder);
      return folder;
    });
  }
}

/** resolveInside returns the path in the editor of a file of a session. It returns undefined if the file, after resolving symbolic links, is outside all folders. */
export function resolveInside(folders: readonly Folder[], cwd: string, path: string): string | undefined {
  const file = resolve(cwd, path);
  const at = realPathOf(file);
  const shown = editorPath(folders, file);
  const best = realPathOf(shown) === at ? shown : file; // the link through which the folder was opened may lead elsewhere now
  return folders.some(({ real }) => isBelow(real, at)) ? best : undefined;
}

/** isDocumentInside reports whether a document of the editor is a file in one of the folders. An agent gets texts of no other document without being asked. */
export function isDocumentInside(folders: readonly Folder[], { scheme, fsPath }: { scheme: string; fsPath: string }): boolean {
  return scheme === "file" && resolveInside(folders, "", fsPath) !== undefined;
}

/** leadsOut returns where a file of the open folders really is, if a symbolic link leads out of them; undefined for all other files. */
export function leadsOut(folders: readonly Folder[], file: string): string | undefined {
  const at = realPathOf(file);
  const inside = folders.some(({ path, real }) => isBelow(path, file) || isBelow(real, file));
  return inside && !folders.some(({ real }) => isBelow(real, at)) ? at : undefined;
}

/** editorPath returns the path under which the editor has a file of a session: below the open folder, even if that was opened through a symbolic link. */
export function editorPath(folders: readonly Folder[], file: string): string {
  const folder = folders.some(({ path }) => isBelow(path, file)) ? undefined : folders.find(({ real }) => isBelow(real, file));
  return folder ? join(folder.path, relative(folder.real, file)) : file;
}

/** sessionPath returns the path under which a session has a file of the editor. It reverses editorPath. */
export function sessionPath(folders: readonly Folder[], file: string): string {
  const folder = folders.find(({ path }) => isBelow(path, file));
  return folder ? join(folder.real, relative(folder.path, file)) : file;
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
