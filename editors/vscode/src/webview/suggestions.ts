import type { FromWebview, Mark, Suggestion } from "../chat/messages";
import { h } from "./dom";
import { icon } from "./icons";

/** Word is the word before the caret that asks for suggestions. */
export interface Word {
  mark: Mark;
  /** without the mark; of an argument the whole line after the slash */
  text: string;
  /** the part of the field that a suggestion replaces */
  start: number;
  end: number;
}

/** wordAt returns the word that ends at the caret, if it begins with @, or with / at the start of the text, or is after the name of a prompt of an MCP server. */
export function wordAt(text: string, caret: number): Word | undefined {
  const before = text.slice(0, caret);
  const word = (mark: Mark, typed: string): Word => ({ mark, text: typed, start: caret - typed.length - 1, end: caret });
  const [command, mention] = [/^\/(\S*)$/.exec(before)?.[1], /(?:^|\s)@([^\s@]*)$/.exec(before)?.[1]];
  if (command !== undefined || mention !== undefined) {
    return command !== undefined ? word("/", command) : word("@", mention ?? "");
  }
  const prompt = /^\/(mcp__\S+\s[^\n]*)$/.exec(before)?.[1];
  return prompt === undefined ? undefined : word("argument", prompt);
}

/** Suggestions is the list above the input that completes a word. The field keeps the focus. */
export class Suggestions {
  readonly element = h("ul", { class: "suggestions", role: "listbox", label: "Suggestions" });
  /** what the user sees when nothing matches the word */
  readonly none = h("div", { class: "suggestions none", role: "status" }, "No file, symbol or resource matches.");
  private entries: Suggestion[] = [];
  private at = 0;
  private moved = false; // the user has chosen an entry with the arrow keys
  private word?: Word;
  private id = 0;

  /** choose applies a suggestion in place of a word. */
  constructor(private readonly field: HTMLTextAreaElement, private readonly post: (message: FromWebview) => void, private readonly choose: (suggestion: Suggestion, word: Word) => void) {
    this.element.id = "suggestions";
    this.element.hidden = this.none.hidden = true;
    for (const [name, value] of [["aria-autocomplete", "list"], ["aria-controls", "suggestions"], ["aria-haspopup", "listbox"]] as const) {
      field.setAttribute(name, value);
    }
    field.addEventListener("blur", () => this.close());
  }

  /** update asks for suggestions for the word at the caret, or closes the list. */
  update(): void {
    const word = wordAt(this.field.value, this.field.selectionStart);
    if (!word) {
      this.close();
    } else if (word.text !== this.word?.text || word.mark !== this.word.mark || word.start !== this.word.start) {
      this.word = word;
      this.moved = false;
      this.post({ type: "suggest", id: ++this.id, mark: word.mark, word: word.text });
    }
  }

  /** show shows an answer to the newest request. A later answer to it has more entries; the chosen one stays. If the last one has none, the list says so. */
  show(id: number, entries: Suggestion[], last = false): void {
    if (id === this.id && this.word) {
      this.entries = entries;
      this.at = this.moved ? this.at : 0;
      this.draw();
      this.none.hidden = !last || entries.length > 0;
    }
  }

  /** key handles a key of the field and reports whether the list used it. */
  key(key: string): boolean {
    const step = ({ ArrowDown: 1, ArrowUp: -1 } as const)[key as "ArrowDown" | "ArrowUp"];
    if (this.element.hidden) {
      return false;
    }
    if (step) {
      this.at = (this.at + step + this.entries.length) % this.entries.length;
      this.moved = true;
      this.draw();
    } else if (key === "Enter" && (this.untyped || this.complete)) {
      this.close(); // the input may be complete without an argument
      return false;
    } else if (key === "Enter" || key === "Tab") {
      this.pick(this.at);
    } else if (key === "Escape") {
      this.close();
    } else {
      return false;
    }
    return true;
  }

  /** untyped reports whether nothing of an argument is typed or chosen. */
  private get untyped(): boolean {
    return this.word?.mark === "argument" && /\s$/.test(this.word.text) && !this.moved;
  }

  /** complete reports whether the chosen command is typed in full and needs no argument. */
  private get complete(): boolean {
    const { insert, open, hint = "" } = this.entries[this.at] ?? {};
    return this.word?.mark === "/" && insert === `/${this.word.text}` && !open && !hint.startsWith("<");
  }

  private pick(at: number) {
    const { word } = this;
    const entry = this.entries[at];
    this.close();
    if (word && entry) {
      this.choose(entry, word);
    }
  }

  private close() {
    this.word = undefined;
    this.entries = [];
    this.draw();
  }

  private draw() {
    const open = this.entries.length > 0;
    this.none.hidden = true;
    this.element.hidden = !open;
    this.element.replaceChildren(...this.entries.map((entry, at) => this.option(entry, at)));
    if (open) {
      this.field.setAttribute("aria-activedescendant", `suggestion-${this.at}`);
      this.element.children[this.at]?.scrollIntoView({ block: "nearest" });
    } else {
      this.field.removeAttribute("aria-activedescendant");
    }
  }

  private option({ label, detail, hint, icon: name }: Suggestion, at: number): HTMLElement {
    const option = h("li", { role: "option", class: at === this.at ? "chosen" : undefined }, icon(name), h("span", { class: "name" }, label), h("small", {}, detail), hint !== undefined && h("span", { class: "hint" }, hint));
    option.id = `suggestion-${at}`;
    option.setAttribute("aria-selected", String(at === this.at));
    option.addEventListener("mousedown", (event) => (event.preventDefault(), this.pick(at))); // before the field loses the focus
    return option;
  }
}
