import { strict as assert } from "node:assert";
import { readFileSync } from "node:fs";
import { chromium, type Browser, type Locator, type Page } from "playwright-core";
import type { FromWebview } from "../../src/chat/messages";
import { pageBody } from "../../src/chat/pageBody";
import type { SavedState } from "../../src/webview/drafts";

declare global {
  interface Window {
    asked: FromWebview[];
  }
}

export const patienceMs = Number(process.env.PATIENCE ?? 60_000);

/** need returns an environment variable that scripts/test-editor sets. It throws if it is not set. */
export const need = (name: string): string => {
  const value = process.env[name];
  if (!value) {
    throw new Error(`${name} is not set: run scripts/test-editor`);
  }
  return value;
};

/** launch starts Chromium without background network requests. */
export function launch(): Promise<Browser> {
  const quiet = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  return chromium.launch({ executablePath: need("CHROMIUM"), args: ["--no-sandbox", ...quiet] });
}

/** until waits for a condition. An error of the condition counts as false. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + patienceMs;
  for (;;) {
    try {
      if (await holds()) {
        return;
      }
    } catch {
      // not yet
    }
    assert.ok(Date.now() < end, `the condition was still false after ${patienceMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** pastePicture pastes a picture of 120 by 80 pixels into a field, as a screenshot tool puts it on the clipboard. */
export async function pastePicture(field: Locator, name: string): Promise<void> {
  await field.evaluate(async (element, fileName) => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 120, height: 80 });
    const context = canvas.getContext("2d");
    for (const [at, color] of ["#c33", "#3c3", "#33c"].entries()) {
      Object.assign(context ?? {}, { fillStyle: color });
      context?.fillRect(40 * at, 0, 40, 80);
    }
    const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve));
    const data = new DataTransfer();
    data.items.add(new File([blob ?? ""], fileName, { type: "image/png" }));
    element.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  }, name);
}

/** dropFile drops a text file on an element, as a file manager does. */
export async function dropFile(on: Locator, name: string, text: string): Promise<void> {
  await on.evaluate((element, file) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([file.text], file.name, { type: "text/plain" }));
    element.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
  }, { name, text });
}

/** The style that VS Code gives the page of each webview, as far as it concerns the elements of a chat. */
const webviewStyle = `
body { color: var(--vscode-editor-foreground); font-family: var(--vscode-font-family); font-size: var(--vscode-font-size); margin: 0; padding: 0 20px; }
img, video { max-width: 100%; max-height: 100%; }
a, a code { color: var(--vscode-textLink-foreground); }
a:focus, input:focus, select:focus, textarea:focus { outline: 1px solid -webkit-focus-ring-color; outline-offset: -1px; }
code { color: var(--vscode-textPreformat-foreground); background-color: var(--vscode-textPreformat-background); padding: 1px 3px; border-radius: 4px; }
pre code { padding: 0; }
blockquote { background: var(--vscode-textBlockQuote-background); border-color: var(--vscode-textBlockQuote-border); }
kbd { background-color: var(--vscode-keybindingLabel-background); color: var(--vscode-keybindingLabel-foreground); }
`;

/** openPage opens the page of a chat in a browser, with the state that VS Code has saved. It collects the messages of the page in window.asked. */
export async function openPage(browser: Browser, saved?: SavedState): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 900, height: 700 } });
  await page.addInitScript((first) => {
    let state: unknown = first;
    window.asked = [];
    Object.assign(window, { acquireVsCodeApi: () => ({ postMessage: (m: FromWebview) => window.asked.push(m), getState: () => state, setState: (s: unknown) => (state = s) }) });
  }, saved);
  await page.goto("about:blank");
  const font = `data:font/ttf;base64,${readFileSync("dist/codicon.ttf").toString("base64")}`;
  await page.setContent(`<!DOCTYPE html><html lang="en"><title>lashd</title><style>${webviewStyle}</style><style>${readFileSync("dist/webview.css", "utf8").replace(/\.\/codicon\.ttf[^")]*/, font)}</style><body data-session="ses_1">${pageBody}</body>`);
  await page.addScriptTag({ content: readFileSync("dist/webview.js", "utf8") });
  return page;
}
