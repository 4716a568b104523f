import MarkdownIt, { type StateCore, type Token } from "markdown-it";

// HTML and images are disabled, so a text cannot load anything. markdown-it rejects links with javascript: and similar schemes.
const markdown = new MarkdownIt("default", { html: false, linkify: false }).disable("image");
markdown.core.ruler.push("files", linkFiles);
markdown.core.ruler.push("tasks", markTasks);

/** A place in a file, such as src/a.ts:12 or a.ts:12:3. */
const place = /(?<![\w/.@:-])((?:[\w.@-]+\/)*[\w.@-]*\w\.[A-Za-z]\w{0,9}):(\d+)(?::\d+|-\d+)?\b/g;

/** A path of a file in code: with a line, or in a directory. */
const codePath = /^(?:\/|\.{1,2}\/)?(?:(?:[\w.@-]+\/)*[\w.@-]*\w\.[A-Za-z]\w{0,9}:\d+(?:[:-]\d+)?|(?:[\w.@-]+\/)+[\w.@-]*\w\.[A-Za-z]\w{0,9})$/;

/** linkFiles makes links of the paths of files in text and code. */
function linkFiles(state: StateCore) {
  for (const block of state.tokens) {
    let inLink = 0;
    block.children &&= block.children.flatMap((token) => {
      inLink += token.type === "link_open" ? 1 : token.type === "link_close" ? -1 : 0;
      if (inLink > 0) {
        return [token];
      }
      if (token.type === "code_inline" && codePath.test(token.content)) {
        return linkTo(state, token.content, token);
      }
      return token.type === "text" ? linkPlaces(state, token) : [token];
    });
  }
}

function linkPlaces(state: StateCore, token: Token): Token[] {
  const found = [...token.content.matchAll(place)];
  if (found.length === 0) {
    return [token];
  }
  const text = (content: string) => Object.assign(new state.Token("text", "", 0), { content });
  let end = 0;
  const parts = found.flatMap((match) => {
    const before = text(token.content.slice(end, match.index));
    end = match.index + match[0].length;
    return [before, ...linkTo(state, match[0], text(match[0]))];
  });
  return [...parts, text(token.content.slice(end))];
}

/** linkTo puts a token into a link to a place in a file. */
function linkTo(state: StateCore, href: string, token: Token): Token[] {
  const open = new state.Token("link_open", "a", 1);
  open.attrSet("href", href.replace(/(:\d+)[:-]\d+$/, "$1"));
  open.attrSet("class", "place");
  return [open, token, new state.Token("link_close", "a", -1)];
}

/** markTasks shows an icon in place of the brackets of a task list. */
function markTasks({ tokens, Token }: StateCore) {
  tokens.forEach((token, at) => {
    const item = tokens[at - 2];
    const [text] = token.children ?? [];
    const task = /^\[([ xX])\] /.exec(text?.content ?? "");
    if (token.type === "inline" && item?.type === "list_item_open" && text && task) {
      const done = task[1] !== " ";
      text.content = text.content.slice(4);
      item.attrJoin("class", "task");
      const icon = new Token("html_inline", "", 0);
      icon.content = `<span class="codicon codicon-${done ? "pass-filled" : "circle-large-outline"}" role="img" aria-label="${done ? "done" : "open"}"></span>`;
      token.children?.unshift(icon);
    }
  });
}

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
