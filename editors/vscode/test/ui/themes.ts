import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";

/** themes are the themes of VS Code in which the page is tested, with the class that VS Code gives the body of a webview. */
export const themes = { "Dark Modern": "vscode-dark", "Light Modern": "vscode-light", "Dark High Contrast": "vscode-high-contrast", "Light High Contrast": "vscode-high-contrast-light" } as const;

export type Theme = keyof typeof themes;

/** themesFile has the colors of each theme, as a real VS Code gives them to a webview. FLOWS=pictures renews it. */
export const themesFile = join("test", "ui", "themes.json");

/** setTheme gives the page the colors of a theme. */
export async function setTheme(page: Page, theme: Theme): Promise<void> {
  const colors = (JSON.parse(readFileSync(themesFile, "utf8")) as Record<Theme, Record<string, string>>)[theme];
  await page.evaluate(([all, name]) => {
    document.documentElement.removeAttribute("style");
    Object.entries(all).forEach(([key, value]) => document.documentElement.style.setProperty(key, value));
    document.body.className = name;
  }, [colors, themes[theme]] as const);
}
