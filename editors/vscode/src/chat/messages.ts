import type { Answer } from "../model/approvals";
import type { ContextPart } from "../model/context";
import type { TextKind } from "../model/input";
import type { Token } from "../model/languages";
import type { Mention as ResourceMention } from "../model/resourceMentions";
import type { SessionView } from "../model/session";
import type { CompactionPreviewResult, DecisionID, Digest, Event, InputID, Item, ItemID, NodeID, SessionID, SessionReadResult, TaskID, TurnID } from "../protocol";

/** Attached is a file, or a part of one, that is sent with an input. */
export interface Attached {
  /** path, with line numbers if it is a part */
  label: string;
  /** the contents of a text; empty: only the name is sent */
  text: string;
  /** what the text is; absent: a file with the label as its path */
  kind?: TextKind;
  file?: AttachedFile;
}

/** AttachedFile is an image, a document or a long text. The daemon stores it before the input that it belongs to. */
export interface AttachedFile {
  /** of this file in the page */
  id: number;
  type: string;
  /** in bytes; 0: unknown */
  size: number;
  /** of the stored contents; absent: not stored yet */
  digest?: Digest;
  /** a small picture of an image, as a data URL */
  thumb?: string;
}

/** Contents are the bytes of a file in base64. */
export interface Contents {
  name: string;
  data: string;
}

/** Recent is a session as a new chat lists it. */
export interface Recent {
  sessionId: SessionID;
  title: string;
  /** when it changed last, such as "2 h" */
  age: string;
}

/** Mention is something that the user attaches with @. */
export type Mention =
  | { kind: "file" | "folder"; uri: string }
  | { kind: "symbol"; uri: string; name: string; start: number; end: number }
  | { kind: "problems" }
  | { kind: "terminal" }
  | { kind: "selection" };

/** Suggestion is an entry of the list below the input. */
export interface Suggestion {
  label: string;
  detail: string;
  /** the arguments that a command takes */
  hint?: string;
  /** name of a codicon */
  icon: string;
  /** replaces the word; absent: the word is removed */
  insert?: string;
  /** the number of characters before the caret that it replaces; absent: the word with its mark */
  replaces?: number;
  /** the user goes on typing the word */
  open?: boolean;
  mention?: Mention;
  /** name of a command that runs when the entry is chosen */
  command?: string;
}

/** Options are the settings that the webview uses. */
export interface Options {
  sendOnEnter: boolean;
  showReasoning: boolean;
  /** the model is that of the demo, which knows only its own inputs */
  demo?: boolean;
}

/** ToWebview is a message from the extension to a chat. */
export type ToWebview =
  /** left is the time in ms until the default answer to each open decision; origin is the title of the session of which this one is a fork, if it is known */
  | { type: "reset"; view: SessionView; options: Options; connected: boolean; left: Record<DecisionID, number>; origin?: string }
  | { type: "events"; events: Event[] }
  | { type: "page"; page: SessionReadResult }
  | { type: "connected"; connected: boolean }
  | { type: "attached"; attached: Attached }
  /** a file that the user chose; the page attaches it like a pasted one */
  | { type: "file"; file: Contents }
  /** the daemon stored an attached file; without a digest it did not */
  | { type: "stored"; id: number; digest?: Digest }
  /** a picture of the conversation, as a data URL */
  | { type: "picture"; digest: Digest; url: string }
  /** what fills the next request; open: the user has asked for it with a command */
  | { type: "context"; parts: ContextPart[]; incomplete: boolean; open?: boolean }
  /** the input was not sent, because no command has its name; near is the name of one that the user may mean */
  | { type: "unknown"; name: string; near?: string }
  /** the colors of a piece of code, by line; without lines it stays plain */
  | { type: "highlighted"; id: number; lines?: Token[][] }
  /** the color theme changed */
  | { type: "theme" }
  /** other sessions of the folder, newest first */
  | { type: "recent"; sessions: Recent[] }
  /** the plugins of the folder that do nothing until the user approves them */
  | { type: "untrusted"; plugins: string[] }
  /** what can replace the word that the user types after @ or /; more of them follow unless this is the last answer */
  | { type: "suggestions"; id: number; suggestions: Suggestion[]; last?: boolean }
  /** the resources of MCP servers that the draft names */
  | { type: "resources"; mentioned: ResourceMention[] }
  /** inputs that the user sent before, newest first */
  | { type: "history"; inputs: string[] }
  /** what a compaction would do; instructions are for its summary */
  | { type: "compaction"; preview: CompactionPreviewResult; instructions: string }
  /** scroll to the message of a node, which may be in a part of the history that is not loaded */
  | { type: "goTo"; nodeId: NodeID }
  /** a compaction has ended */
  | { type: "compacted"; ok: boolean }
  /** text to add to the input; replace removes the present text first, send sends the input */
  | { type: "draft"; text: string; replace?: boolean; send?: boolean }
  | { type: "undraft"; text: string } // the turn with this input is back
  | { type: "sent"; ok: boolean }
  /** the input takes the focus */
  | { type: "focus" }
  /** says something above the input, until the user closes it or chooses a button */
  | { type: "notice"; id: number; text: string; buttons: string[] }
  | { type: "failed"; message: string };

/** Mark says what a typed word can be: something to attach, a command, or an argument of a prompt. */
export type Mark = "@" | "/" | "argument";

/** WhenBusy selects whether an input is queued or steers the running turn. */
export type WhenBusy = "queue" | "steer";

/** FromWebview is a message from a chat to the extension. */
export type FromWebview =
  | { type: "ready" }
  /** with asText, a word after a slash at the start is no command */
  | { type: "send"; text: string; attached: Attached[]; whenBusy: WhenBusy; asText?: boolean }
  | { type: "stop" }
  | ({ type: "answer"; decisionId: DecisionID } & Answer)
  /** open the diff of a file that an open approval would change; file is its index */
  | { type: "preview"; decisionId: DecisionID; file: number }
  /** run a call once more to which the sandbox refused something: with the hosts that it lacked, or outside the sandbox */
  | { type: "again"; itemId: ItemID; withHosts: boolean }
  /** the user chose a button of a notice, or closed it */
  | { type: "noticed"; id: number; button?: string }
  | { type: "withdraw"; inputId: InputID }
  | { type: "older" }
  | { type: "attach" }
  /** attach files that were dropped from a view of the editor */
  | { type: "dropped"; uris: string[] }
  | { type: "store"; id: number; data: string }
  | { type: "picture"; digest: Digest; mediaType: string }
  | { type: "context" }
  | { type: "highlight"; id: number; language: string; code: string }
  /** open the chat of another session */
  | { type: "show"; sessionId: SessionID }
  /** a word that begins with @ or / was typed; word is without that character. After the name of a prompt, word is the whole line after / */
  | { type: "suggest"; id: number; mark: Mark; word: string }
  /** the draft has words that can name resources of MCP servers */
  | { type: "resources"; text: string }
  /** attach what a suggestion stands for */
  | { type: "mention"; mention: Mention }
  /** call a command that a suggestion stands for */
  | { type: "command"; name: string; text: string }
  | { type: "history" }
  /** compact the history as the preview has shown */
  | { type: "compact"; instructions: string }
  | { type: "diff"; change: NonNullable<NonNullable<Item["output"]>["change"]> }
  | { type: "open"; href: string }
  /** show the output of a background task */
  | { type: "task"; taskId: TaskID }
  | { type: "fork"; itemId: ItemID }
  | { type: "changes"; turnId: TurnID }
  /** a command on the active chat */
  | { type: "run"; command: "chooseModel" | "chooseMode" | "chooseSandbox" | "chooseEffort" | "showTrace" | "newSession" | "showRules" | "findSession"; turnId?: TurnID }
  /** review a plugin of the folder, so that the user can trust it */
  | { type: "review"; plugin: string }
  /** set up the provider of the session */
  | { type: "setUp" }
  /** undo a turn and all later ones; text is the input of the turn */
  | { type: "rewind"; turnId: TurnID; text: string }
  /** undo a message that steered a turn, and everything after it */
  | { type: "rewindMessage"; itemId: ItemID; text: string };
