import type { QueuedInput } from "../protocol";
import type { SessionView } from "./session";

/** waitingInputs returns the queued inputs that no turn has read. */
export const waitingInputs = ({ queue, turnId }: Pick<SessionView, "queue" | "turnId">): QueuedInput[] => queue.filter((input) => input.turnId !== turnId || input.state === "pendingActive");

/**
 * takenBack returns the waiting inputs that return into the field when the user stops the turn; otherwise the next one would start at once.
 * Inputs of plugins, tasks and scripts stay in the queue.
 */
export const takenBack = (view: Pick<SessionView, "queue" | "turnId">): QueuedInput[] => waitingInputs(view).filter(({ source, wake, turnOptions, schema }) => !source && !wake && !turnOptions && schema === undefined);
