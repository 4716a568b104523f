import type { FromWebview, Recent } from "../chat/messages";
import { button, h } from "./dom";
import { icon } from "./icons";

/** examples are first inputs, which the user can edit before they are sent. */
const examples = [
  ["Explain this project", "Explain this project: what it does, how it is built and tested, and which files to read first."],
  ["Fix a bug with a test", "Find out why "],
  ["Review my changes", "Review the changes that are not committed yet. Name bugs and missing tests; change nothing."],
] as const;

const shortcuts = [
  ["Enter", "send; while a turn runs, add to the queue"],
  ["Ctrl+Enter", "steer the running turn"],
  ["Escape", "stop the turn"],
  ["@", "attach files, symbols, problems, terminal output or resources of MCP servers"],
  ["/", "commands and skills"],
  ["\u2191", "earlier inputs, in an empty field"],
] as const;

/** Welcome is what an empty chat shows: what lashd can do, examples, other sessions and shortcuts. */
export class Welcome {
  private readonly recent = h("div", { class: "recent" });
  private shown = false;

  /** fill puts an example into the input. */
  constructor(private readonly place: HTMLElement, private readonly post: (message: FromWebview) => void, private readonly fill: (text: string) => void) {}

  show(empty: boolean): void {
    this.place.hidden = !empty;
    if (empty && !this.shown) {
      this.shown = true;
      this.place.replaceChildren(...this.contents());
    }
  }

  /** showRecent lists other sessions of the folder. */
  showRecent(sessions: Recent[]): void {
    const entry = ({ sessionId, title, age }: Recent) => h("li", {}, button(title, () => this.post({ type: "show", sessionId }), { class: "link", title }), h("small", {}, age));
    const all = button("Find a session\u2026", () => this.post({ type: "run", command: "findSession" }), { class: "link" });
    this.recent.replaceChildren(...(sessions.length === 0 ? [] : [h("h2", {}, "Recent sessions"), h("ul", {}, ...sessions.map(entry)), all]));
  }

  private contents(): Node[] {
    const example = ([title, text]: (typeof examples)[number]) => button(title, () => this.fill(text), { class: "example" });
    const row = ([key, about]: (typeof shortcuts)[number]) => h("tr", {}, h("th", {}, h("kbd", {}, key)), h("td", {}, about));
    return [
      h("h1", {}, icon("comment-discussion"), " New session"),
      h("p", {}, "The agent reads and changes files of this folder, runs commands in a sandbox, and asks you before anything else. You can undo each turn. It continues when you close the window."),
      h("div", { class: "examples" }, ...examples.map(example)),
      this.recent,
      h("h2", {}, "Shortcuts"),
      h("table", {}, h("tbody", {}, ...shortcuts.map(row))),
    ];
  }
}
