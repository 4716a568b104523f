/** Entry is an entry of a menu. Its label begins with a mark if current is true or false. */
export interface Entry {
  label: string;
  description?: string;
  current?: boolean;
}

/** withMark marks the current entry, and moves the others to the same column. */
export function withMark<T extends Entry>(entry: T): T {
  return entry.current === undefined ? entry : { ...entry, label: `$(${entry.current ? "check" : "blank"}) ${entry.label}` };
}

/** selectedOf returns the entry to select: that which was selected before, else the current one, else none. */
export function selectedOf<T extends Entry>(entries: readonly T[], before: Entry | undefined): T[] {
  const same = (entry: T) => entry.label === before?.label && entry.description === before.description;
  const selected = entries.find(same) ?? entries.find(({ current }) => current);
  return selected ? [selected] : [];
}
