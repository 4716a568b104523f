import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ThemeRegistrationRaw } from "@shikijs/core";
import darkPlus from "@shikijs/themes/dark-plus";
import lightPlus from "@shikijs/themes/light-plus";
import * as vscode from "vscode";
import { parseJsonc } from "../model/jsonc";

/** ThemeFile is a color theme of VS Code. */
interface ThemeFile {
  include?: string;
  colors?: Record<string, string>;
  tokenColors?: unknown;
}

/** The deepest chain of themes that include each other. */
const maxDepth = 8;

/** themeSettings are the settings that choose the colors of code. VS Code applies another theme before it stores the setting. */
export const themeSettings = ["workbench.colorTheme", "workbench.preferredDarkColorTheme", "workbench.preferredLightColorTheme", "workbench.preferredHighContrastColorTheme", "workbench.preferredHighContrastLightColorTheme", "window.autoDetectColorScheme", "window.autoDetectHighContrast", "editor.tokenColorCustomizations"];

/** uiThemes are the names of the kinds of themes in the manifests of extensions. */
const uiThemes = { [vscode.ColorThemeKind.Light]: "vs", [vscode.ColorThemeKind.Dark]: "vs-dark", [vscode.ColorThemeKind.HighContrast]: "hc-black", [vscode.ColorThemeKind.HighContrastLight]: "hc-light" };

/** tokenTheme returns the colors that the user's theme gives to code. If the theme cannot be read, it returns those of VS Code's default theme of the same kind. */
export function tokenTheme(): ThemeRegistrationRaw {
  const light = [vscode.ColorThemeKind.Light, vscode.ColorThemeKind.HighContrastLight].includes(vscode.window.activeColorTheme.kind);
  const base = (light ? lightPlus : darkPlus) as ThemeRegistrationRaw;
  const path = themePath();
  const rules = path === undefined ? [] : rulesOf(path, maxDepth);
  return { ...base, name: "user", tokenColors: [...(rules.length > 0 ? rules : (base.tokenColors ?? [])), ...customRules()] } as unknown as ThemeRegistrationRaw;
}

/** themePath returns the file of the color theme in use; undefined if no extension here has it. */
function themePath(): string | undefined {
  const name = themeName();
  const kind = uiThemes[vscode.window.activeColorTheme.kind];
  for (const extension of vscode.extensions.all) {
    const { contributes } = extension.packageJSON as { contributes?: { themes?: { id?: string; label: string; uiTheme?: string; path: string }[] } };
    const found = contributes?.themes?.find((theme) => (theme.id ?? theme.label) === name && theme.uiTheme === kind);
    if (found) {
      return join(extension.extensionPath, found.path);
    }
  }
  return undefined;
}

/** themeName returns the name of the color theme in use: the chosen one, or the one for the color scheme of the system. */
function themeName(): string | undefined {
  const { Dark, Light, HighContrast } = vscode.ColorThemeKind;
  const window = vscode.workspace.getConfiguration("window");
  const workbench = vscode.workspace.getConfiguration("workbench");
  const { kind } = vscode.window.activeColorTheme;
  if (kind === Dark || kind === Light) {
    return workbench.get(window.get("autoDetectColorScheme") ? (kind === Dark ? "preferredDarkColorTheme" : "preferredLightColorTheme") : "colorTheme");
  }
  return workbench.get(window.get("autoDetectHighContrast") ? (kind === HighContrast ? "preferredHighContrastColorTheme" : "preferredHighContrastLightColorTheme") : "colorTheme");
}

function rulesOf(path: string, depth: number): unknown[] {
  try {
    const theme = parseJsonc(readFileSync(path, "utf8")) as ThemeFile;
    const below = theme.include && depth > 0 ? rulesOf(join(dirname(path), theme.include), depth - 1) : [];
    return [...below, ...(Array.isArray(theme.tokenColors) ? (theme.tokenColors as unknown[]) : [])];
  } catch {
    return []; // the theme is in a format that only VS Code reads
  }
}

/** customRules returns the rules of the user's setting editor.tokenColorCustomizations. */
function customRules(): unknown[] {
  const { textMateRules = [] } = vscode.workspace.getConfiguration("editor").get<{ textMateRules?: unknown[] }>("tokenColorCustomizations") ?? {};
  return textMateRules;
}
