import type { Session } from "../protocol";

/** hasFinished reports whether a change of a session is the end of its work, as far as a person wants to know: it ran, and now it waits for the next input. */
export function hasFinished(before: Session | undefined, after: Session): boolean {
  const ran = before !== undefined && before.state !== "idle" && after.turnIndex > before.turnIndex;
  return ran && after.state === "idle" && !after.archived && after.relation.parent === undefined;
}
