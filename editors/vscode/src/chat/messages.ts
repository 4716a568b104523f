import type { SessionView } from "../model/session";
import type { DecisionChoice, DecisionID, Event, InputID, Item, ItemID, SessionReadResult, TurnID } from "../protocol";

/** Attached is a file, or a part of one, that is sent with an input. */
export interface Attached {
  /** path, with line numbers if it is a part */
  label: string;
  text: string;
}

/** Options are the settings that the webview uses. */
export interface Options {
  sendOnEnter: boolean;
  showReasoning: boolean;
}

/** ToWebview is a message from the extension to a chat. */
export type ToWebview =
  | { type: "reset"; view: SessionView; options: Options; connected: boolean }
  | { type: "events"; events: Event[] }
  | { type: "page"; page: SessionReadResult }
  | { type: "connected"; connected: boolean }
  | { type: "attached"; attached: Attached }
  | { type: "draft"; text: string }
  | { type: "sent"; ok: boolean }
  | { type: "failed"; message: string };

/** WhenBusy selects whether an input is queued or steers the running turn. */
export type WhenBusy = "queue" | "steer";

/** FromWebview is a message from a chat to the extension. */
export type FromWebview =
  | { type: "ready" }
  | { type: "send"; text: string; attached: Attached[]; whenBusy: WhenBusy }
  | { type: "stop" }
  | { type: "answer"; decisionId: DecisionID; choice: DecisionChoice; value?: unknown }
  | { type: "withdraw"; inputId: InputID }
  | { type: "older" }
  | { type: "attach" }
  | { type: "diff"; change: NonNullable<NonNullable<Item["output"]>["change"]> }
  | { type: "open"; href: string }
  | { type: "fork"; itemId: ItemID }
  | { type: "changes"; turnId: TurnID }
  /** a command on the active chat */
  | { type: "run"; command: "chooseModel" | "chooseMode" | "showTrace"; turnId?: TurnID }
  /** undo a turn and all later ones; text is the input of the turn */
  | { type: "rewind"; turnId: TurnID; text: string };
