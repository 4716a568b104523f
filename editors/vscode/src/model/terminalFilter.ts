/** Characters that begin a control string after ESC, and those that begin one alone. */
const [afterEscape, alone] = ["]PX^_", "\u009d\u0090\u0098\u009e\u009f"];

/** Characters that end an escape sequence. BEL ends a control string, too. */
const ends = "\u0018\u001a\u009c";

/**
 * TerminalFilter removes control strings, such as OSC 52, from the output of a command for a terminal of VS Code. With them, a command in a
 * sandbox could read and write the clipboard of the user, or pretend to be a command of the terminal. Colors and movements of the cursor stay.
 */
export class TerminalFilter {
  private state: "text" | "escape" | "string" = "text";

  /** pass returns the part of an output that the terminal gets. The output comes in pieces. */
  pass(output: string): string {
    return Array.from(output, (c) => this.next(c)).join("");
  }

  private next(c: string): string {
    const inEscape = this.state === "escape";
    if (c === "\u001b") {
      this.state = "escape";
      return "";
    }
    if (this.state === "string") {
      this.state = ends.includes(c) || c === "\u0007" ? "text" : "string";
      return "";
    }
    if (alone.includes(c) || (inEscape && afterEscape.includes(c))) {
      this.state = "string";
      return "";
    }
    if (inEscape && (c < " " || c === "\u007f") && !ends.includes(c)) {
      return c; // a terminal obeys it, and goes on with the escape sequence
    }
    this.state = "text";
    return inEscape ? `\u001b${c}` : c;
  }
}
