import { resolve } from "node:path";
import Mocha from "mocha";

/** run is what VS Code calls to have tests run in its extension host. */
export function run(): Promise<void> {
  const mocha = new Mocha({ timeout: 30_000, color: false });
  mocha.addFile(resolve(__dirname, "extension.test.js"));
  return new Promise((done, fail) => mocha.run((failures) => (failures === 0 ? done() : fail(new Error(`${failures} tests failed`)))));
}
