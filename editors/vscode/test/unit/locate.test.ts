import { strict as assert } from "node:assert";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { locate } from "../../src/daemon/locate";

describe("issue/6-1 the path of lashd", () => {
  let dir: string;
  const make = (...path: string[]) => {
    const file = join(dir, ...path);
    mkdirSync(join(file, ".."), { recursive: true });
    writeFileSync(file, "");
    chmodSync(file, 0o700);
    return file;
  };
  const find = (setting: string) => locate({ setting, bundled: join(dir, "unpacked"), path: `relative:${join(dir, "a")}:${join(dir, "b")}`, windows: false });

  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), "locate-"));
  });
  afterEach(() => rmSync(dir, { recursive: true }));

  it("comes from the setting, then the extension, then PATH", () => {
    assert.match((find("") as { problem: string }).problem, /not found/);
    const inPath = make("b", "lashd");
    assert.deepEqual(find(""), { command: inPath });
    const unpacked = make("unpacked", "lashd");
    assert.deepEqual(find(""), { command: unpacked });
    const set = make("elsewhere", "mine");
    assert.deepEqual(find(set), { command: set });
  });

  it("has no fallback if the setting is wrong", () => {
    make("b", "lashd");
    assert.match((find(join(dir, "gone")) as { problem: string }).problem, /not an executable file/);
    assert.match((find("b/lashd") as { problem: string }).problem, /absolute/);
    assert.match((find(dir) as { problem: string }).problem, /not an executable file/);
  });
});
