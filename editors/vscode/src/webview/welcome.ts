import type { FromWebview, Recent } from "../chat/messages";
import { modeOf, sandboxOf } from "../model/modes";
import { onOneLine } from "../model/printable";
import type { Config } from "../protocol";
import { button, h } from "./dom";
import { icon } from "./icons";

/** examples are first inputs, which the user can edit before they are sent. */
const examples = [
  ["Explain this project", "Explain this project: what it does, how it is built and tested, and which files to read first."],
  ["Fix a bug with a test", "Fix this bug, and write a test that fails without the fix: "],
  ["Review my changes", "Review the changes that are not committed yet. Name bugs and missing tests; change nothing."],
] as const;

/** demoExamples are the inputs that the model of the demo answers. */
const demoExamples = [
  ["Fix a typo", "Fix the typo."],
  ["Tell a story", "Tell me a story."],
  ["Run a slow command", "Run the slow command."],
] as const;

const shortcuts = [
  ["Enter", "send; while a turn runs, add to the queue"],
  ["Ctrl+Enter", "steer the running turn"],
  ["Escape", "stop the turn (from the input)"],
  ["@", "attach files, symbols, problems, terminal output or resources of MCP servers"],
  ["/", "commands and skills"],
  ["\u2191", "earlier inputs, in an empty field"],
] as const;

/** untrustedText says that parts of a folder wait for approval, with the words of the terminal. */
const untrustedText = "This workspace has skills, commands, agents, hooks, MCP servers, permissions or plugins that do nothing until you approve them. ";

/** Welcome is what an empty chat shows: what lashd can do, examples, other sessions and shortcuts. */
export class Welcome {
  private readonly recent = h("div", { class: "recent" });
  private readonly asks = h("p", { class: "asks" });
  private readonly untrusted = h("p", { class: "untrusted", role: "status" });
  private shown = false;

  /** fill puts an example into the input. */
  constructor(private readonly place: HTMLElement, private readonly post: (message: FromWebview) => void, private readonly fill: (text: string) => void) {}

  /** show shows what holds for a session with a configuration, as long as it is empty. */
  show(empty: boolean, config: Config, demo = false): void {
    const mode = modeOf(config);
    const change = button("Change\u2026", () => this.post({ type: "run", command: "chooseMode" }), { class: "link", title: "Choose what lashd asks about" });
    this.asks.replaceChildren(h("b", {}, `${mode.name}. `), `${mode.about(sandboxOf(config))} `, change);
    this.place.hidden = !empty;
    if (empty && !this.shown) {
      this.shown = true;
      this.place.replaceChildren(...this.contents(demo ? demoExamples : examples));
    }
  }

  /** showRecent lists other sessions of the folder. */
  showRecent(sessions: Recent[]): void {
    const entry = ({ sessionId, title, age }: Recent) => h("li", {}, button(title, () => this.post({ type: "show", sessionId }), { class: "link", title }), h("small", {}, age));
    const all = button("Find a session\u2026", () => this.post({ type: "run", command: "findSession" }), { class: "link" });
    this.recent.replaceChildren(...(sessions.length === 0 ? [] : [h("h2", {}, "Recent sessions"), h("ul", {}, ...sessions.map(entry)), all]));
  }

  /** showUntrusted says which plugins of the folder wait for approval, and offers to review each. */
  showUntrusted(plugins: string[]): void {
    const review = (plugin: string) => button(plugins.length === 1 ? "Review\u2026" : `Review ${onOneLine(plugin)}\u2026`, () => this.post({ type: "review", plugin }), { class: "link" });
    this.untrusted.replaceChildren(...(plugins.length === 0 ? [] : [icon("shield"), ` ${untrustedText}`, ...plugins.flatMap((plugin) => [review(plugin), " "])]));
  }

  private contents(offered: typeof examples | typeof demoExamples): Node[] {
    const example = ([title, text]: (typeof offered)[number]) => button(title, () => this.fill(text), { class: "example" });
    const row = ([key, about]: (typeof shortcuts)[number]) => h("tr", {}, h("th", {}, h("kbd", {}, key)), h("td", {}, about));
    return [
      h("h1", {}, icon("comment-discussion"), " New session"),
      h("p", {}, "The agent works with the files of this folder and runs commands. You can undo each turn. It continues when you close the window."),
      this.asks,
      this.untrusted,
      h("div", { class: "examples" }, ...offered.map(example)),
      this.recent,
      h("h2", {}, "Shortcuts"),
      h("table", {}, h("tbody", {}, ...shortcuts.map(row))),
    ];
  }
}
