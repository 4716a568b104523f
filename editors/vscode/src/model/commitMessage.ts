/** The length of a diff that a model gets, in characters. */
const maxDiff = 60_000;

/** describedDiff returns the diff of the next commit: what is staged, or else all changes, as the button Commit of VS Code offers; undefined: there are none. */
export function describedDiff(staged: string, unstaged: string): string | undefined {
  return [staged, unstaged].find((diff) => diff.trim() !== "");
}

/** commitPrompt asks a model for the message of a commit. recent are the subjects of earlier commits, whose style the message follows. */
export function commitPrompt(diff: string, recent: readonly string[]): string {
  const cut = diff.length > maxDiff ? `${diff.slice(0, maxDiff)}\n(the rest of the diff is cut)` : diff;
  return [
    "Write the message of a git commit for the changes below.",
    "First a subject of at most 72 characters, in the style of the earlier commits. Then, only if it is needed, an empty line and why the change was made.",
    "Reply with the message alone: no quotes, no code fence, no introduction.",
    ...(recent.length > 0 ? [`Subjects of earlier commits:\n${recent.join("\n")}`] : []),
    `Changes:\n${cut}`,
  ].join("\n\n");
}

/** plainReply returns the text of a reply without a code fence around it. */
export function plainReply(reply: string): string {
  const text = reply.trim();
  const fenced = /^```[^\n]*\n([^]*?)\n?```$/.exec(text);
  return (fenced?.[1] ?? text).replace(/\s+$/, "");
}
