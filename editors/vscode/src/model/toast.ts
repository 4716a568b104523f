import { printable } from "./printable";

/** The longest notification that VS Code shows without cutting it, in characters with the targets of its links. */
const maxMessage = 1000;

/** Link is a link of a notification that runs a command. */
export interface Link {
  label: string;
  command: string;
  args: unknown[];
  /** the link is offered only if the notification shows the whole question */
  needsWhole?: boolean;
}

/** toastOf returns the text of a notification: a question, then links. It cuts a question that is too long, and leaves out the links that need all of it. */
export function toastOf(question: string, links: Link[]): string {
  const whole = message(toastText(question), links);
  if (whole.length <= maxMessage) {
    return whole;
  }
  const others = links.filter(({ needsWhole }) => !needsWhole);
  const rest = message("\u2026", others);
  return `${toastText(question).slice(0, maxMessage - rest.length)}${rest}`;
}

/**
 * toastText returns a text for a notification, in which VS Code looks for links. A text from an agent must not form a link that looks like a
 * choice, so an invisible character separates the brackets of a link. The text reads the same.
 */
export function toastText(text: string): string {
  return printable(text).replaceAll("](", "]\u2060(");
}

/** toastTitle returns a title before a colon in a notification. */
export function toastTitle(title: string): string {
  return toastText(title).replace(/[.:]+$/, "");
}

function message(question: string, links: Link[]): string {
  return [question, ...links.map(linkText)].join(" \u00b7 ");
}

function linkText({ label, command, args }: Link): string {
  const encoded = encodeURIComponent(JSON.stringify(args)).replace(/[()]/g, (c) => `%${c.charCodeAt(0).toString(16)}`);
  return `[${label}](command:${command}?${encoded})`;
}
