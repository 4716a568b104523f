/** FoundFile is a file of the workspace. */
export interface FoundFile {
  /** relative to the workspace */
  path: string;
}

/** excludeGlob returns the glob of the files that the user's settings files.exclude and search.exclude leave out; undefined if there are none. */
export function excludeGlob(...settings: Record<string, unknown>[]): string | undefined {
  const globs = new Set(settings.flatMap((setting) => Object.entries(setting).flatMap(([glob, on]) => (on === true ? [glob] : []))));
  return globs.size === 0 ? undefined : `{${[...globs].join(",")}}`;
}

/** ranked returns the first files of a list: those that are open in the editor, then those in fewer directories, then by path. It cuts after sorting. */
export function ranked<F extends FoundFile>(files: readonly F[], open: ReadonlySet<string>, most: number): F[] {
  const rank = ({ path }: F) => (open.has(path) ? -1 : path.split("/").length);
  return files.toSorted((a, b) => rank(a) - rank(b) || (a.path < b.path ? -1 : 1)).slice(0, most);
}

/**
 * matching returns the files and directories that a query can mean, best first: the name, a name that begins with it, a name with it, a path with it, then a name with its
 * letters in order. With a slash in the query, the letters may be anywhere in the path.
 */
export function matching<F extends FoundFile>(files: readonly F[], query: string, most: number): F[] {
  const wanted = query.toLowerCase();
  const scored = files.flatMap((file) => {
    const score = scoreOf(file.path.toLowerCase(), wanted);
    return score === undefined ? [] : [{ file, score }];
  });
  return scored.toSorted((a, b) => a.score - b.score).slice(0, most).map(({ file }) => file);
}

function scoreOf(path: string, wanted: string): number | undefined {
  const name = path.slice(path.replace(/\/$/, "").lastIndexOf("/") + 1);
  const ways = [name.replace(/\/$/, "") === wanted.replace(/\/$/, ""), name.startsWith(wanted), name.includes(wanted), path.includes(wanted), hasInOrder(wanted.includes("/") ? path : name, wanted)];
  const found = ways.indexOf(true);
  return found < 0 ? undefined : found;
}

function hasInOrder(text: string, letters: string): boolean {
  let at = 0;
  for (const letter of letters) {
    at = text.indexOf(letter, at) + 1;
    if (at === 0) {
      return false;
    }
  }
  return true;
}
