import { readdirSync } from "node:fs";
import { join } from "node:path";
import Mocha from "mocha";

/** run runs the tests. VS Code calls it in the extension host. */
export function run(): Promise<void> {
  const mocha = new Mocha({ timeout: 30_000, color: false });
  readdirSync(__dirname).filter((name) => name.endsWith(".test.js")).sort().forEach((name) => mocha.addFile(join(__dirname, name)));
  return new Promise((done, fail) => mocha.run((failures) => (failures === 0 ? done() : fail(new Error(`${failures} tests failed`)))));
}
