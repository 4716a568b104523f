import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import type { Workbench } from "./workbench";

/** themes are the themes of VS Code in which the page is tested, with the class that VS Code gives the body of a webview. */
export const themes = { "Dark Modern": "vscode-dark", "Light Modern": "vscode-light", "Dark High Contrast": "vscode-high-contrast", "Light High Contrast": "vscode-high-contrast-light" } as const;

export type Theme = keyof typeof themes;

/** themesFile has the colors of each theme, as a real VS Code gives them to a webview. FLOWS=pictures renews it. */
export const themesFile = join("test", "ui", "themes.json");

/** chooseTheme chooses a color theme in a real VS Code. */
export async function chooseTheme(code: Workbench, theme: Theme): Promise<void> {
  await code.run("Preferences: Color Theme");
  await code.page.locator(".quick-input-widget:visible input.input").fill(theme);
  await code.choose(theme);
}

/** setTheme gives the page the colors of a theme. */
export async function setTheme(page: Page, theme: Theme): Promise<void> {
  const colors = (JSON.parse(readFileSync(themesFile, "utf8")) as Record<Theme, Record<string, string>>)[theme];
  await page.evaluate(([all, name]) => {
    document.documentElement.removeAttribute("style");
    Object.entries(all).forEach(([key, value]) => document.documentElement.style.setProperty(key, value));
    document.body.className = name;
  }, [colors, themes[theme]] as const);
}
