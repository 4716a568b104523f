import type { FileChange, Hunk as PreviewHunk } from "../protocol";

/** Hunk is a part of a unified diff: the lines before and after the change. */
export interface Hunk {
  /** first line in the new text, counted from 1; 0 if the new text is empty */
  start: number;
  before: string[];
  after: string[];
}

/** parse returns the hunks of a unified diff of one file. */
export function parse(diff: string): Hunk[] {
  const hunks: Hunk[] = [];
  for (const line of diff.split("\n")) {
    const head = /^@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    const hunk = hunks.at(-1);
    if (head) {
      hunks.push({ start: Number(head[1]), before: [], after: [] });
    } else if (hunk && line.startsWith("-")) {
      hunk.before.push(line.slice(1));
    } else if (hunk && line.startsWith("+")) {
      hunk.after.push(line.slice(1));
    } else if (hunk && line.startsWith(" ")) {
      hunk.before.push(line.slice(1));
      hunk.after.push(line.slice(1));
    }
  }
  return hunks;
}

/** TextHunk is a part of a unified diff as text: its lines with their marks. */
export type TextHunk = Pick<PreviewHunk, "oldStart" | "newStart" | "text">;

/** changesOf returns the changes of each file of a change. A call that changes several files has one diff for all of them. */
export function changesOf(change: FileChange): FileChange[] {
  const heads = [...change.diff.matchAll(/^--- (?:a\/)?(.+)\n\+\+\+ (?:b\/)?(.+)\n(?=@@ )/gm)];
  if (heads.length < 2) {
    return [change];
  }
  return heads.map(({ index, 1: old = "", 2: path = "" }, at) => {
    const diff = change.diff.slice(index, heads[at + 1]?.index);
    const lines = textHunks(diff).flatMap(({ text }) => text.split("\n"));
    const count = (mark: string) => lines.filter((line) => line.startsWith(mark)).length;
    return { path: path === "/dev/null" ? old : path, diff, added: count("+"), removed: count("-") };
  });
}

/** textHunks returns the hunks of a unified diff of one file. */
export function textHunks(diff: string): TextHunk[] {
  const heads = [...diff.matchAll(/^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@.*\n/gm)];
  return heads.map((head, at) => ({ oldStart: Number(head[1]), newStart: Number(head[2]), text: diff.slice(head.index + head[0].length, heads[at + 1]?.index) }));
}

/** hunkOf returns a hunk of an approval. start is that of the old text. */
export function hunkOf({ oldStart, text }: PreviewHunk): Hunk {
  const lines = text.replace(/\n$/, "").split("\n");
  const side = (mark: string) => lines.filter((line) => line.startsWith(" ") || line.startsWith(mark)).map((line) => line.slice(1));
  return { start: oldStart, before: side("-"), after: side("+") };
}

/** applyHunks returns the text after hunks whose start is that of the old text, or undefined if the text is another one. */
export function applyHunks(text: string, hunks: Hunk[]): string | undefined {
  return revertHunks(text, hunks.map(({ start, before, after }) => ({ start, before: after, after: before })));
}

/** revertHunks returns the text before a diff, or undefined if the text changed after the diff. */
export function revertHunks(text: string, hunks: Hunk[]): string | undefined {
  const lines = text.split("\n");
  for (const hunk of hunks.toReversed()) {
    const at = Math.max(hunk.start - 1, 0);
    const there = lines.slice(at, at + hunk.after.length);
    if (there.length !== hunk.after.length || there.some((line, i) => line !== hunk.after[i])) {
      return undefined;
    }
    lines.splice(at, hunk.after.length, ...hunk.before);
  }
  return lines.join("\n");
}

/** hunkSides returns the parts of both texts that a diff contains. Use it for a file that changed after the diff. */
export function hunkSides(hunks: Hunk[]): { before: string; after: string } {
  const join = (of: (hunk: Hunk) => string[]) => hunks.map((hunk) => of(hunk).join("\n")).join("\n...\n");
  return { before: join((hunk) => hunk.before), after: join((hunk) => hunk.after) };
}
