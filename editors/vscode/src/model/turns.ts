import type { Item, TurnID } from "../protocol";
import { quotedOf } from "./input";

/** ShownTurn is a turn and what the user wrote for it. */
export interface ShownTurn {
  turnId: TurnID;
  input: string;
}

/** undoQuestion asks whether to undo a turn, and those after it if there are any. */
export function undoQuestion(items: readonly Item[], turnId: TurnID): string {
  const newest = items.findLast((item) => item.turnId !== undefined)?.turnId;
  return `Undo this turn${newest === turnId ? "" : " and all later turns"}`;
}

/** turnsOf returns the turns of items that begin with an input of the user, newest first. Attached texts and later inputs of a turn do not count. */
export function turnsOf(items: readonly Item[]): ShownTurn[] {
  const inputs = new Map<TurnID, string>();
  for (const { kind, turnId, text = "", origin, attachment } of items) {
    if (kind === "userMessage" && turnId !== undefined && origin?.kind !== "plugin" && !inputs.get(turnId)) {
      inputs.set(turnId, quotedOf(text) ? "" : text || (attachment?.name ?? ""));
    }
  }
  return [...inputs].map(([turnId, input]) => ({ turnId, input })).reverse();
}
