import MarkdownIt from "markdown-it";

// HTML and images are disabled, so a text cannot load anything. markdown-it rejects links with javascript: and similar schemes.
const markdown = new MarkdownIt("default", { html: false, linkify: false }).disable("image");

/** render converts Markdown from a model to safe HTML. */
export function render(text: string): string {
  return markdown.render(text);
}

/** settledEnd returns the end of the part of a growing text whose HTML cannot change: the last blank line outside code and lists. */
export function settledEnd(text: string): number {
  let end = 0;
  let fence = "";
  let at = 0;
  let plain = true;
  for (const line of text.split(/(?<=\n)/)) {
    const ticks = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1] ?? "";
    if (fence === "" && ticks !== "") {
      fence = ticks;
    } else if (fence !== "" && ticks.startsWith(fence) && line.trim() === ticks) {
      fence = "";
    }
    at += line.length;
    const blank = line.trim() === "" && line.endsWith("\n");
    plain = blank ? plain : !/^(\s|[-*+>]\s|\d+[.)]\s)/.test(line);
    if (blank && fence === "" && plain) {
      end = at;
    }
  }
  return end;
}

/** StreamedMarkdown renders a growing text. It renders only the part again that can still change. */
export class StreamedMarkdown {
  private settled = "";
  private html = "";

  render(text: string): string {
    if (!text.startsWith(this.settled)) {
      this.settled = this.html = "";
    }
    const rest = text.slice(this.settled.length);
    const end = settledEnd(rest);
    if (end > 0) {
      this.html += render(rest.slice(0, end));
      this.settled += rest.slice(0, end);
    }
    return this.html + render(rest.slice(end));
  }
}
