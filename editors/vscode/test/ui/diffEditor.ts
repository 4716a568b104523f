import type { Locator, Page } from "playwright-core";

/** diffLines returns the lines of both sides of the first diff editor of a page, once its right side has a text. */
export async function diffLines(page: Page, text: string): Promise<{ before: string[]; after: string[] }> {
  const side = (name: string) => page.locator(`.monaco-diff-editor .editor.${name}`).first().locator(".view-line");
  await side("modified").filter({ hasText: text }).first().waitFor();
  const lines = async (name: string) => {
    const all = await side(name).evaluateAll((rows) => rows.map((row) => ({ top: row.getBoundingClientRect().top, text: (row as HTMLElement).innerText.replaceAll("\u00a0", " ") })));
    return all.sort((a, b) => a.top - b.top).map((row) => row.text).filter((row) => row !== "");
  };
  return { before: await lines("original"), after: await lines("modified") };
}

/** titleButton returns a button in the title of the active editor. */
export function titleButton(page: Page, name: string): Locator {
  return page.locator(".editor-group-container.active .editor-actions").getByRole("button", { name: new RegExp(`^${name}`) });
}
