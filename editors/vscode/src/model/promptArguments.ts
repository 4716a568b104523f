import type { Suggestion } from "../chat/messages";
import type { CommandArgument } from "../protocol";

/** Word is a word of a line without its quotes, and where it begins with them. */
interface Word {
  text: string;
  at: number;
}

/** TypedArgument is the argument of a prompt that a person is writing at the end of a line. */
export interface TypedArgument {
  argument: CommandArgument;
  /** what is written of it */
  value: string;
  /** where the value begins in the line, with its quote */
  at: number;
  /** values of the arguments before it */
  others: Record<string, string>;
}

/**
 * argumentAt returns the argument at the end of the line after the name of a prompt, by the rules of docs/mcp.md; undefined if the prompt takes no
 * more. A word NAME=VALUE is for the argument of that name, the other words are for the remaining ones in order, and the last one gets all that
 * are left.
 */
export function argumentAt(line: string, all: readonly CommandArgument[]): TypedArgument | undefined {
  const words = wordsOf(line);
  const last = words.pop() ?? { text: "", at: line.length };
  const others: Record<string, string> = {};
  const plain: Word[] = [];
  for (const word of words) {
    const named = namedBy(word.text, all);
    if (named) {
      others[named.argument.name] = named.value;
    } else {
      plain.push(word);
    }
  }
  const free = all.filter(({ name }) => !(name in others));
  const named = namedBy(last.text, all);
  if (named) {
    const at = last.at + named.argument.name.length + 1;
    return line[at - 1] === "=" ? { ...named, at, others } : undefined; // else the name is in quotes
  }
  const index = Math.min(plain.length, free.length - 1);
  const argument = free[index];
  if (!argument) {
    return undefined;
  }
  free.slice(0, index).forEach(({ name }, at) => (others[name] = plain[at]?.text ?? ""));
  const rest = [...plain.slice(index), last];
  return { argument, value: rest.map(({ text }) => text).join(" "), at: rest[0]?.at ?? line.length, others };
}

function namedBy(word: string, all: readonly CommandArgument[]): { argument: CommandArgument; value: string } | undefined {
  const at = word.indexOf("=");
  const argument = at < 0 ? undefined : all.find(({ name }) => name === word.slice(0, at));
  return argument && { argument, value: word.slice(at + 1) };
}

/** wordsOf splits a line at spaces outside of quotes. A line that ends with such a space has an empty word at its end. */
function wordsOf(line: string): Word[] {
  const words = [...line.matchAll(/(?:"[^"]*(?:"|$)|'[^']*(?:'|$)|[^\s"'])+/g)].map(({ 0: word, index }) => ({ word, at: index }));
  const end = words.at(-1);
  const open = end !== undefined && end.at + end.word.length === line.length;
  const all = words.map(({ word, at }): Word => ({ text: word.replace(/"([^"]*)(?:"|$)|'([^']*)(?:'|$)/g, "$1$2"), at }));
  return open ? all : [...all, { text: "", at: line.length }];
}

/** argumentSuggestions returns suggestions for the values of an argument at the end of a line. */
export function argumentSuggestions(line: string, { argument, value, at }: TypedArgument, all: readonly CommandArgument[], values: readonly string[]): Suggestion[] {
  const detail = [argument.name, argument.description].filter(Boolean).join(" \u00b7 ");
  return values.filter((one) => one !== value).flatMap((one) => {
    const insert = quoted(one, all);
    return insert === undefined ? [] : [{ label: one, detail, icon: "symbol-parameter", insert, replaces: line.length - at }];
  });
}

/** quoted returns a value as one word of a line; undefined if a line cannot have it as an argument without its name. */
function quoted(value: string, all: readonly CommandArgument[]): string | undefined {
  const quotes = ["", '"', "'"].map((quote) => `${quote}${value}${quote}`);
  const isOne = (word: string) => {
    const [first, ...more] = wordsOf(word);
    return first?.text === value && more.length === 0 && !isOpen(word);
  };
  return namedBy(value, all) || /[\n\0]/.test(value) ? undefined : quotes.find((word) => isOne(word));
}

/** isOpen reports whether a quote of a line is not closed. */
function isOpen(line: string): boolean {
  return /["']/.test(line.replace(/"[^"]*"|'[^']*'/g, ""));
}
