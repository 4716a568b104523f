import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Page } from "playwright-core";
import type { ThemeRegistrationRaw } from "@shikijs/core";
import { parseJsonc } from "../../src/model/jsonc";
import { need } from "./browser";
import type { Workbench } from "./workbench";

/** themes are the themes of VS Code in which the page is tested, with the class that VS Code gives the body of a webview. */
export const themes = { "Dark Modern": "vscode-dark", "Light Modern": "vscode-light", "Dark High Contrast": "vscode-high-contrast", "Light High Contrast": "vscode-high-contrast-light" } as const;

export type Theme = keyof typeof themes;

/** themesFile has the colors of each theme, as a real VS Code gives them to a webview. FLOWS=pictures renews it. */
export const themesFile = join("test", "ui", "themes.json");

const files: Record<Theme, string> = { "Dark Modern": "dark_modern", "Light Modern": "light_modern", "Dark High Contrast": "hc_black", "Light High Contrast": "hc_light" };

/** codeColors returns the colors that a theme of VS Code gives to code. */
export function codeColors(theme: Theme): ThemeRegistrationRaw {
  const dir = join(need("CODE_SERVER"), "node_modules", "code-server", "lib", "vscode", "extensions", "theme-defaults", "themes");
  const rules = (path: string): unknown[] => {
    const { include, tokenColors = [] } = parseJsonc(readFileSync(path, "utf8")) as { include?: string; tokenColors?: unknown[] };
    return [...(include ? rules(join(dirname(path), include)) : []), ...tokenColors];
  };
  return { name: theme, type: theme.startsWith("Light") ? "light" : "dark", tokenColors: rules(join(dir, `${files[theme]}.json`)) } as never;
}

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
