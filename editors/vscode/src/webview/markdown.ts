import MarkdownIt from "markdown-it";

// No HTML of the text's own and no images: nothing is loaded from elsewhere. markdown-it refuses javascript: and the like in links.
const markdown = new MarkdownIt("default", { html: false, linkify: false }).disable("image");

/** render makes HTML of a text that a model wrote. */
export function render(text: string): string {
  return markdown.render(text);
}

/** settledEnd is where the part of a growing text ends that more text will not change: a blank line outside of code and lists. */
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

/** Growing renders a text that grows, and does again only what may still change. */
export class Growing {
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
