import { sameContent, type Draft } from "../model/draft";
import type { InputID } from "../protocol";

/** SavedState is the state that VS Code stores for a page. All other state comes from the daemon. */
export interface SavedState {
  sessionId: string;
  /** The drafts of the sessions that the page has shown. The view in the side bar shows one after the other. */
  drafts?: Record<string, Draft>;
}

/** StateApi is the part of the API of VS Code that stores the state of a page. */
export interface StateApi {
  getState(): SavedState | undefined;
  setState(state: SavedState): void;
}

/** The number of sessions whose drafts are stored. */
const maxDrafts = 10;

/** Drafts stores the input that the user has not sent, for each session by itself. */
export class Drafts {
  constructor(private readonly api: StateApi, private readonly sessionId: string) {}

  /** restore returns the draft of the session, and stores which session the page shows. */
  restore(): Draft | undefined {
    const { drafts = {} } = this.api.getState() ?? {};
    this.api.setState({ sessionId: this.sessionId, drafts });
    return drafts[this.sessionId];
  }

  /** saved is the stored draft of the session. */
  get saved(): Draft | undefined {
    return this.api.getState()?.drafts?.[this.sessionId];
  }

  /** store stores the draft of the session, without an empty one. The oldest drafts make room. newest returns the newest input of the session. */
  store({ text, attached }: Draft, newest: () => InputID | undefined): void {
    const { saved } = this;
    const draft: Draft = { text, attached, seen: saved && sameContent(saved, { text, attached }) ? saved.seen : newest() };
    const others = Object.entries(this.api.getState()?.drafts ?? {}).filter(([id]) => id !== this.sessionId);
    const empty = draft.text === "" && draft.attached.length === 0;
    const drafts = [...others.slice(1 - maxDrafts), ...(empty ? [] : [[this.sessionId, draft] as const])];
    this.api.setState({ sessionId: this.sessionId, drafts: Object.fromEntries(drafts) });
  }
}
