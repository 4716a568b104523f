/** aliases map the names that models give languages, and the extensions of files, to the grammars of the extension. */
const aliases: Record<string, string> = {
  "c++": "cpp", "c#": "csharp", bash: "shellscript", cc: "cpp", console: "shellscript", cs: "csharp", cts: "typescript", dockerfile: "docker", h: "c",
  hpp: "cpp", htm: "html", javascript: "typescript", js: "typescript", json5: "json", jsonc: "json", jsonl: "json", jsx: "tsx", kt: "kotlin", makefile: "make", md: "markdown",
  mjs: "typescript", mts: "typescript", patch: "diff", ps1: "powershell", py: "python", rb: "ruby", rs: "rust", sh: "shellscript", shell: "shellscript", starlark: "python",
  svg: "xml", ts: "typescript", yml: "yaml", zsh: "shellscript",
};

/** grammars are the languages whose code is highlighted. The build makes a file of each, which is loaded when it is first needed. */
export const grammars = [
  "c", "cpp", "csharp", "css", "diff", "docker", "go", "html", "ini", "java", "json", "kotlin", "lua", "make", "markdown", "php", "powershell", "python", "rust", "scss",
  "shellscript", "sql", "swift", "terraform", "toml", "tsx", "typescript", "xml", "yaml",
] as const;

/** grammarOf returns the grammar of a language, or undefined if its code is shown plain. */
export function grammarOf(language: string): string | undefined {
  const name = language.toLowerCase();
  const known = aliases[name] ?? name;
  return (grammars as readonly string[]).includes(known) ? known : undefined;
}

/** languageOf returns the language of a file for its name: its extension, or the whole name without one. */
export function languageOf(path: string): string {
  return /[^./\\]+$/.exec(path)?.[0] ?? "";
}

/** Token is a piece of code with the color and the font style of a theme. The style adds 1 for italic, 2 for bold, 4 for underlined. */
export type Token = [text: string, color?: string, style?: number];
