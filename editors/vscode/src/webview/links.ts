import type { FromWebview } from "../chat/messages";

/**
 * openLinks lets the extension open the links of the page. The script of VS Code around the page must not see the click: it would open an
 * address without a question, and vscode: links, too.
 */
export function openLinks(post: (message: FromWebview) => void): void {
  document.addEventListener("click", (event) => {
    const link = (event.target as Element).closest("a");
    if (link) {
      event.preventDefault();
      event.stopPropagation();
      post({ type: "open", href: link.getAttribute("href") ?? "" });
    }
  });
}
