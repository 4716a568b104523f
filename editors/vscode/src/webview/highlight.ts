import hljs from "highlight.js/lib/core";
import python from "highlight.js/lib/languages/python";

hljs.registerLanguage("python", python);

/** The length of code that is highlighted, in characters. Longer code is plain, because a card is drawn again while its code grows. */
const maxChars = 100_000;

/** highlightLines returns the HTML of each line of code. All text in it is escaped. Code of languages other than Starlark and Python is plain. */
export function highlightLines(language: string | undefined, code: string): string[] {
  const known = (language === "starlark" || language === "python") && code.length <= maxChars;
  return linesOf(known ? hljs.highlight(code, { language: "python" }).value : escaped(code));
}

/** linesOf splits HTML of spans into lines. A span that covers several lines ends with each and begins again with the next. */
function linesOf(html: string): string[] {
  const open: string[] = [];
  return html.split("\n").map((line) => {
    const before = open.join("");
    for (const [tag] of line.matchAll(/<span[^>]*>|<\/span>/g)) {
      if (tag === "</span>") {
        open.pop();
      } else {
        open.push(tag);
      }
    }
    return before + line + "</span>".repeat(open.length);
  });
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
