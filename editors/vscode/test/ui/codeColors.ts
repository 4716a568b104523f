import { strict as assert } from "node:assert";
import { isDeepStrictEqual } from "node:util";
import type { Locator } from "playwright-core";
import { until } from "./browser";

/** Colored is a piece of code without spaces, and its color. */
type Colored = [text: string, color: string];

/** sameColors waits until the lines of an editor and an element of a chat both show code in the same colors, more than four. */
export async function sameColors(editor: Locator, chat: Locator, code: string): Promise<void> {
  const whole = code.replaceAll(/\s/g, "");
  let [wanted, shown]: Colored[][] = [];
  await until(async () => {
    [wanted, shown] = await Promise.all([colorsOf(editor), colorsOf(chat)]);
    return wanted.map(([text]) => text).join("") === whole && new Set(wanted.map(([, color]) => color)).size > 4 && isDeepStrictEqual(shown, wanted);
  }).catch(() => assert.deepEqual(shown, wanted));
}

/** colorsOf returns the text of elements from top to bottom, in pieces of one color. */
async function colorsOf(elements: Locator): Promise<Colored[]> {
  const lines = await elements.evaluateAll((all) =>
    all.map((element) => {
      const found: [string, string][] = [];
      const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
      while (texts.nextNode()) {
        const parent = texts.currentNode.parentElement;
        found.push([texts.currentNode.textContent ?? "", parent ? getComputedStyle(parent).color : ""]);
      }
      return { top: element.getBoundingClientRect().top, found };
    }),
  );
  return joined(lines.sort((a, b) => a.top - b.top).flatMap(({ found }) => found as Colored[]));
}

/** joined joins neighbors of one color. How a line is cut into tokens is the choice of each highlighter. */
function joined(pieces: Colored[]): Colored[] {
  const all: Colored[] = [];
  for (const [piece, color] of pieces) {
    const text = piece.replaceAll(/\s/g, "");
    const last = all.at(-1);
    if (last?.[1] === color) {
      last[0] += text;
    } else if (text !== "") {
      all.push([text, color]);
    }
  }
  return all;
}
