import { strict as assert } from "node:assert";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { unpack } from "../../src/daemon/unpack";

describe("part13/vscode the lashd in the extension", function () {
  this.timeout(60_000); // it starts processes
  let dir: string;
  const extension = () => join(dir, "extension");
  const storage = () => join(dir, "storage");

  /** pack makes an extension with a program that prints a word. */
  const pack = (word: string) => {
    rmSync(extension(), { recursive: true, force: true });
    mkdirSync(join(extension(), "bin"), { recursive: true });
    writeFileSync(join(extension(), "bin", "lashd"), `#!/bin/sh\necho ${word}\n`);
    execFileSync(process.execPath, ["pack.mjs", join(extension(), "bin", "lashd")]);
  };

  beforeEach(() => (dir = mkdtempSync(join(tmpdir(), "unpack-"))));
  afterEach(() => rmSync(dir, { recursive: true }));

  it("is unpacked once, also by several windows at the same time", async () => {
    pack("one");
    const unpacked = await Promise.all([unpack(extension(), storage(), "lashd"), unpack(extension(), storage(), "lashd")]);
    const program = join(unpacked[0] ?? "", "lashd");
    assert.equal(execFileSync(program, { encoding: "utf8" }), "one\n");
    assert.equal(unpacked[1], unpacked[0]);
    assert.deepEqual(readdirSync(unpacked[0] ?? ""), ["lashd"]);
    const { mtimeMs } = statSync(program);
    assert.equal(await unpack(extension(), storage(), "lashd"), unpacked[0]);
    assert.equal(statSync(program).mtimeMs, mtimeMs);
  });

  it("replaces older versions, and keeps the one before", async () => {
    const dirs: string[] = [];
    for (const word of ["one", "two", "three"]) {
      pack(word);
      dirs.push((await unpack(extension(), storage(), "lashd")) ?? "");
      await new Promise((resolve) => setTimeout(resolve, 20)); // the directories have different times
    }
    assert.deepEqual(dirs.map((at) => existsSync(join(at, "lashd"))), [false, true, true]);
  });

  it("is absent in an extension without one", async () => {
    assert.equal(await unpack(extension(), storage(), "lashd"), undefined);
    assert.equal(existsSync(storage()), false);
  });
});
