import type { FromWebview } from "../chat/messages";
import type { Token } from "../model/languages";
import { h } from "./dom";

/** The number of pieces of code whose colors are kept. */
const maxKept = 400;

/** The longest code whose colors are asked for, in characters. */
const maxChars = 100_000;

/** Known are the colors of a piece of code; undefined while the extension finds them out. */
interface Known {
  id: number;
  lines?: Token[][];
  waiting: ((lines: Token[][]) => void)[];
}

/** Highlights colors code as the editor does. The extension finds the colors, because only it can read the theme. */
export class Highlights {
  private readonly known = new Map<string, Known>();
  private nextId = 1;

  constructor(private readonly post: (message: FromWebview) => void) {}

  /** paint colors an element whose text is code, now or when the colors are known. */
  paint(element: HTMLElement, language: string, code: string): void {
    this.ask(language, code, (lines) => {
      element.replaceChildren(...lines.flatMap((line, at) => [...(at > 0 ? ["\n"] : []), ...line.map(tokenElement)]), code.endsWith("\n") && !endsEmpty(lines) ? "\n" : "");
    });
  }

  /** paintLines colors elements that have a line of code each. */
  paintLines(elements: HTMLElement[], language: string, code: string): void {
    this.ask(language, code, (lines) => elements.forEach((element, at) => element.replaceChildren(...(lines[at] ?? []).map(tokenElement), "\n")));
  }

  /** arrived colors the code that waited for an answer. Without lines it stays plain. */
  arrived(id: number, lines: Token[][] | undefined): void {
    const entry = [...this.known.values()].find((one) => one.id === id);
    if (entry && lines) {
      entry.lines = lines;
      entry.waiting.forEach((apply) => apply(lines));
    }
    entry?.waiting.splice(0);
  }

  /** forget drops all colors after a change of the theme. */
  forget(): void {
    this.known.clear();
  }

  private ask(language: string, code: string, apply: (lines: Token[][]) => void) {
    const key = `${language}\n${code}`;
    const entry = this.known.get(key);
    if (entry?.lines) {
      apply(entry.lines);
    } else if (entry) {
      entry.waiting.push(apply);
    } else if (language !== "" && code.length <= maxChars) {
      this.request(key, language, code, apply);
    }
  }

  private request(key: string, language: string, code: string, apply: (lines: Token[][]) => void) {
    const id = this.nextId++;
    this.known.set(key, { id, waiting: [apply] });
    for (const oldest of [...this.known.keys()].slice(0, -maxKept)) {
      this.known.delete(oldest);
    }
    this.post({ type: "highlight", id, language, code });
  }
}

const endsEmpty = (lines: Token[][]) => lines.at(-1)?.length === 0;

function tokenElement([text, color, style = 0]: Token): Node {
  const span = h("span", { class: "token" }, text);
  const properties: [string, string | undefined][] = [["--token", color], ["font-style", style & 1 ? "italic" : undefined], ["font-weight", style & 2 ? "bold" : undefined], ["text-decoration", style & 4 ? "underline" : undefined]];
  properties.forEach(([name, value]) => value && span.style.setProperty(name, value));
  return span;
}
