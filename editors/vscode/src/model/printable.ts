// Control characters except tabs and line breaks, marks that change the direction of text, separators of lines, and invisible tags. The
// daemon's own clients show the same ones as escapes.
const hiding = /\r(?!\n)|[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|[\u{e0000}-\u{e007f}]/gu;

/** printable replaces characters that hide text, or show it in another order, by their JSON escapes. */
export function printable(text: string): string {
  return text.replace(hiding, (found) => Array.from({ length: found.length }, (_, at) => `\\u${found.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""));
}

/** onOneLine returns a text as one line, with its line breaks as escapes. */
export function onOneLine(text: string): string {
  return printable(text).replace(/\r?\n/g, "\\n");
}

/**
 * labelText returns a text for a label in which VS Code replaces $(name) by an icon, such as an entry of a list. A command substitution would
 * be invisible there, so an invisible character separates the marks of an icon. The text reads the same.
 */
export function labelText(text: string): string {
  return printable(text).replaceAll("$(", "$\u2060(");
}
