import { strict as assert } from "node:assert";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { Highlighter } from "../../src/chat/highlighter";
import { grammarOf, grammars } from "../../src/model/languages";
import { parseJsonc } from "../../src/model/jsonc";

const theme = (keyword: string) => ({ name: "mine", type: "dark", colors: {}, fg: "#eeeeee", bg: "#000000", tokenColors: [{ settings: { foreground: "#eeeeee" } }, { scope: "keyword, storage", settings: { foreground: keyword, fontStyle: "bold italic" } }] }) as never;

describe("part/13 the colors of code", function () {
  this.timeout(60_000); // the largest grammars take a second each

  const loaded: string[] = [];
  const load = (grammar: string) => {
    loaded.push(grammar);
    return (createRequire(resolve("dist"))(resolve(join("dist", "grammars", `${grammar}.js`))) as { default: never[] }).default;
  };

  it("come from the theme, and change with it", () => {
    const highlighter = new Highlighter(load, theme("#aa0000"));
    assert.deepEqual(highlighter.tokens("go", "func f() {}\n")?.[0]?.[0], ["func", "#AA0000", 3]);
    highlighter.setTheme(theme("#00bb00"));
    assert.deepEqual(highlighter.tokens("go", "func f() {}\n")?.[0]?.[0], ["func", "#00BB00", 3]);
  });

  it("are those of the page where the theme has no rule for code, whatever its rule for everything says", () => {
    assert.deepEqual(new Highlighter(load, theme("#aa0000")).tokens("ts", "f();")?.[0], [["f();"]]);
  });

  it("need a grammar only once, and only for known languages of a bearable length", () => {
    loaded.length = 0;
    const highlighter = new Highlighter(load, theme("#aa0000"));
    assert.deepEqual([highlighter.tokens("nonsense", "x"), highlighter.tokens("py", `"${"x".repeat(100_000)}"`)], [undefined, undefined]);
    highlighter.tokens("py", "x");
    highlighter.tokens("starlark", "y");
    assert.deepEqual(loaded, ["python"]);
  });

  it("are found for every language of the extension, with all of its text", () => {
    const highlighter = new Highlighter(load, theme("#aa0000"));
    const code = "if (a < b) { return 'x'; } // y\n\tend\n";
    for (const grammar of grammars) {
      assert.equal(highlighter.tokens(grammar, code)?.map((line) => line.map(([text]) => text).join("")).join("\n"), code, grammar);
    }
  });

  it("are right however long the first use of a grammar takes, and long lines stay plain", () => {
    const { now } = Date;
    let passed = 0;
    try {
      Date.now = () => (passed += 1000);
      const highlighter = new Highlighter(load, { name: "mine", type: "dark", colors: {}, tokenColors: [{ settings: { foreground: "#eeeeee" } }, { scope: "comment", settings: { foreground: "#00aa00" } }] } as never);
      const lines = highlighter.tokens("ts", `// a comment\nexport const x = 1; // b\n// ${"c".repeat(1000)}`);
      assert.deepEqual(lines?.map((line) => line.filter(([, color]) => color === "#00AA00").map(([text]) => text).join("")), ["// a comment", "// b", ""]);
    } finally {
      Date.now = now;
    }
  });

  it("know the names that models use", () => {
    assert.deepEqual(["JS", "bash", "c++", "dockerfile", "toml", "brainfuck"].map(grammarOf), ["typescript", "shellscript", "cpp", "docker", "toml", undefined]);
  });
});

describe("part/13 a theme file", () => {
  it("may have comments and trailing commas, also in strings", () => {
    assert.deepEqual(parseJsonc('{ // "a"\n "b": "// no, ]", /* c */ "d": [1, 2,],\n}'), { b: "// no, ]", d: [1, 2] });
  });
});
