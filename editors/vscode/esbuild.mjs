// Builds the extension and its webview into dist. --production minifies them for the vsix; --tests also builds the tests.

import { readFileSync, readdirSync } from "node:fs";
import { build } from "esbuild";

const production = process.argv.includes("--production");

/** @type {import("esbuild").BuildOptions} */
const common = { bundle: true, outdir: "dist", minify: production, sourcemap: production ? false : "linked", logLevel: "warning" };

/** @type {import("esbuild").BuildOptions} */
const host = { ...common, platform: "node", format: "cjs", target: "node20", external: ["vscode", "mocha"] };

/** @param {string} dir */
const testsOf = (dir) => readdirSync(dir).filter((name) => name.endsWith(".ts")).map((name) => `${dir}/${name}`);

await build({ ...host, entryPoints: ["src/extension.ts"] });
const grammars = /grammars = \[([^\]]*)\]/.exec(readFileSync("src/model/languages.ts", "utf8"))?.[1]?.match(/\w+/g) ?? [];
await build({ ...host, entryPoints: grammars.map((name) => ({ in: `@shikijs/langs/${name}`, out: `grammars/${name}` })), sourcemap: false, minify: true });
await build({
  ...common,
  platform: "browser",
  format: "iife",
  target: "es2022",
  loader: { ".ttf": "file" },
  assetNames: "[name]",
  entryPoints: [{ in: "src/webview/main.ts", out: "webview" }, { in: "src/webview/newChat.ts", out: "newChat" }, { in: "src/webview/style.css", out: "webview" }],
});
if (process.argv.includes("--tests")) {
  const entryPoints = ["test/unit", "test/live", "test/ui", "test/pictures", "test/host"].flatMap(testsOf);
  await build({ ...host, entryPoints, outbase: "test", outdir: "dist/test", external: ["vscode", "mocha", "linkedom", "playwright-core"] });
}
