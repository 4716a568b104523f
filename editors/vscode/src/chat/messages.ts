import type { SessionView } from "../model/session";
import type { DecisionChoice, DecisionID, Event, InputID, Item, ItemID, SessionReadResult, TurnID } from "../protocol";

/** Attached is a piece of a file that goes with an input. */
export interface Attached {
  /** as it is shown: a path, with lines if it is a part */
  label: string;
  text: string;
}

/** Options are settings that matter to the webview. */
export interface Options {
  sendOnEnter: boolean;
  showReasoning: boolean;
}

/** ToWebview is what the extension tells a chat. */
export type ToWebview =
  | { type: "reset"; view: SessionView; options: Options; connected: boolean }
  | { type: "events"; events: Event[] }
  | { type: "page"; page: SessionReadResult }
  | { type: "connected"; connected: boolean }
  | { type: "attached"; attached: Attached }
  | { type: "draft"; text: string }
  | { type: "sent"; ok: boolean }
  | { type: "failed"; message: string };

/** How an input is taken while a turn runs. */
export type When = "queue" | "steer";

/** FromWebview is what a chat asks the extension for. */
export type FromWebview =
  | { type: "ready" }
  | { type: "send"; text: string; attached: Attached[]; when: When }
  | { type: "stop" }
  | { type: "answer"; decisionId: DecisionID; choice: DecisionChoice; value?: unknown }
  | { type: "withdraw"; inputId: InputID }
  | { type: "older" }
  | { type: "attach" }
  | { type: "diff"; change: NonNullable<NonNullable<Item["output"]>["change"]> }
  | { type: "open"; href: string }
  | { type: "fork"; itemId: ItemID }
  | { type: "changes"; turnId: TurnID }
  /** one of the commands of the chat in front */
  | { type: "run"; command: "chooseModel" | "chooseMode" | "showTrace"; turnId?: TurnID }
  /** to before a turn, whose input was text */
  | { type: "rewind"; turnId: TurnID; text: string };
