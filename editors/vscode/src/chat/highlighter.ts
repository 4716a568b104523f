import { createHighlighterCoreSync, type HighlighterCore, type ThemeRegistrationRaw } from "@shikijs/core";
import { createJavaScriptRegexEngine } from "@shikijs/engine-javascript";
import { grammarOf, type Token } from "../model/languages";

/** The longest line that is highlighted, in characters. Longer ones stay plain, so none takes long. */
const maxLine = 1000;

/** The longest code that is highlighted, in characters. */
const maxChars = 100_000;

/** plain is the color of code for which a theme has no rule. It stands for that of the page, which is the editor's. */
const plain = "#01020304";

/** Highlighter finds the colors of code in a theme. It loads a grammar when it first needs it. */
export class Highlighter {
  private readonly core: HighlighterCore = createHighlighterCoreSync({ engine: createJavaScriptRegexEngine({ forgiving: true }), themes: [], langs: [] });
  private readonly loaded = new Set<string>();
  private theme = "";
  private themes = 0;

  /** load returns a grammar with those that it needs. */
  constructor(private readonly load: (grammar: string) => never[], theme: ThemeRegistrationRaw) {
    this.setTheme(theme);
  }

  /** setTheme changes the colors. Each theme gets a name of its own, because a known name keeps its colors. Like VS Code, it ignores rules without a scope. */
  setTheme({ tokenColors = [], ...theme }: ThemeRegistrationRaw): void {
    this.theme = `user ${++this.themes}`;
    this.core.loadThemeSync({ ...theme, name: this.theme, tokenColors: [{ settings: { foreground: plain } }, ...tokenColors.filter(({ scope }) => scope)] });
  }

  /**
   * tokens returns the tokens of each line of code, or undefined if it stays plain. There is no limit of time: after one, the rest of a line
   * has the colors of what is before it, and the first use of a grammar takes long.
   */
  tokens(language: string, code: string): Token[][] | undefined {
    const lang = grammarOf(language);
    if (lang === undefined || code.length > maxChars) {
      return undefined;
    }
    if (!this.loaded.has(lang)) {
      this.core.loadLanguageSync(this.load(lang));
      this.loaded.add(lang);
    }
    const lines = this.core.codeToTokensBase(code, { lang, theme: this.theme, tokenizeMaxLineLength: maxLine, tokenizeTimeLimit: 0 });
    return lines.map((line) => line.map(({ content, color, fontStyle = 0 }) => tokenOf(content, color === plain ? undefined : color, fontStyle)));
  }
}

function tokenOf(text: string, color: string | undefined, style: number): Token {
  return style > 0 ? [text, color, style] : color === undefined ? [text] : [text, color];
}
