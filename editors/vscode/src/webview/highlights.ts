import type { FromWebview } from "../chat/messages";
import { readable } from "../model/contrast";
import type { Token } from "../model/languages";
import { h } from "./dom";

/** The number of pieces of code whose colors are kept. */
const maxKept = 400;

/** The longest code whose colors are asked for, in characters. */
const maxChars = 100_000;

/** The number of uses of a piece of code from which those that are no longer in the page are forgotten. */
const manyUses = 20;

/** PageColors are the colors around code. */
export interface PageColors {
  background: string;
  foreground: string;
}

/** Use is a place in the page that shows a piece of code. */
interface Use {
  element: HTMLElement;
  apply: (lines: Token[][]) => void;
}

/** Known is a piece of code with its colors; without them while the extension finds them out. */
interface Known {
  id: number;
  language: string;
  code: string;
  lines?: Token[][];
  uses: Use[];
}

/** Highlights colors code as the editor does. The extension finds the colors, because only it can read the theme. */
export class Highlights {
  private readonly known = new Map<string, Known>();
  private readonly readable = new Map<string, string>(); // colors of the theme with enough contrast
  private nextId = 1;

  /** colors returns the colors of the page now; without them all code has those of the theme. */
  constructor(private readonly post: (message: FromWebview) => void, private readonly colors: () => PageColors = () => ({ background: "", foreground: "" })) {}

  /** paint colors an element whose text is code, now or when the colors are known. */
  paint(element: HTMLElement, language: string, code: string): void {
    this.ask(language, code, element, (lines) => {
      element.replaceChildren(...lines.flatMap((line, at) => [...(at > 0 ? ["\n"] : []), ...line.map((token) => this.element(token))]), code.endsWith("\n") && !endsEmpty(lines) ? "\n" : "");
    });
  }

  /** paintLines colors elements that have a line of code each. */
  paintLines(elements: HTMLElement[], language: string, code: string): void {
    const [first] = elements;
    if (first) {
      this.ask(language, code, first, (lines) => elements.forEach((element, at) => element.replaceChildren(...(lines[at] ?? []).map((token) => this.element(token)), "\n")));
    }
  }

  /** arrived colors the code that waited for an answer. Without lines it stays plain. */
  arrived(id: number, lines: Token[][] | undefined): void {
    const entry = [...this.known.values()].find((one) => one.id === id);
    if (entry && lines) {
      entry.lines = lines;
      entry.uses.forEach(({ apply }) => apply(lines));
    }
  }

  /** forget drops all colors after a change of the theme, and asks for those of the code in the page again. */
  forget(): void {
    const before = [...this.known.values()];
    this.known.clear();
    this.readable.clear();
    for (const { language, code, uses } of before) {
      uses.filter(({ element }) => element.isConnected).forEach(({ element, apply }) => this.ask(language, code, element, apply));
    }
  }

  /** recolor colors all code again after the page has got other colors. */
  recolor(): void {
    this.readable.clear();
    for (const { lines, uses } of this.known.values()) {
      uses.filter(({ element }) => lines && element.isConnected).forEach(({ apply }) => apply(lines ?? []));
    }
  }

  private element([text, color, style = 0]: Token): Node {
    const span = h("span", { class: "token" }, text);
    const properties: [string, string | undefined][] = [["--token", color && this.contrasting(color)], ["font-style", style & 1 ? "italic" : undefined], ["font-weight", style & 2 ? "bold" : undefined], ["text-decoration", style & 4 ? "underline" : undefined]];
    properties.forEach(([name, value]) => value && span.style.setProperty(name, value));
    return span;
  }

  /** contrasting returns a color of the theme with enough contrast. Some themes lack it, such as for the head of a diff. */
  private contrasting(color: string): string {
    const known = this.readable.get(color);
    if (known !== undefined) {
      return known;
    }
    const { background, foreground } = this.colors();
    const found = readable(color, background, foreground);
    this.readable.set(color, found);
    return found;
  }

  private ask(language: string, code: string, element: HTMLElement, apply: Use["apply"]) {
    const key = `${language}\n${code}`;
    const entry = this.known.get(key);
    if (entry) {
      entry.uses = [...entry.uses.filter((use) => entry.uses.length < manyUses || use.element.isConnected), { element, apply }];
      if (entry.lines) {
        apply(entry.lines);
      }
    } else if (language !== "" && code.length <= maxChars) {
      this.request(key, { id: this.nextId++, language, code, uses: [{ element, apply }] });
    }
  }

  private request(key: string, entry: Known) {
    this.known.set(key, entry);
    for (const oldest of [...this.known.keys()].slice(0, -maxKept)) {
      this.known.delete(oldest);
    }
    const { id, language, code } = entry;
    this.post({ type: "highlight", id, language, code });
  }
}

const endsEmpty = (lines: Token[][]) => lines.at(-1)?.length === 0;
