import { strict as assert } from "node:assert";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveInside } from "../../src/model/folders";

describe("issue/6-1 folders of editor tools", () => {
  const top = mkdtempSync(join(tmpdir(), "folders-"));
  const open = join(top, "open");
  const cwd = join(open, "sub");
  mkdirSync(join(open, "sub", "..well"), { recursive: true });
  mkdirSync(join(top, "openly"));
  writeFileSync(join(top, "secret"), "");
  symlinkSync(top, join(open, "out"));
  symlinkSync(open, join(top, "other name"));
  after(() => rmSync(top, { recursive: true }));

  const good = ["a.ts", "../b.ts", "..well/c.ts", "new/d.ts", open, join(open, "sub", "..", "b.ts")];
  for (const path of good) {
    it(`contain ${path.replace(top, "")}`, () => assert.ok(resolveInside([open], cwd, path)?.startsWith(open)));
  }
  const bad = ["../../secret", join(open, "..", "secret"), "../out/secret", "../out/new", join(top, "openly", "a"), top, "/"];
  for (const path of bad) {
    it(`do not contain ${path.replace(top, "")}`, () => assert.equal(resolveInside([open], cwd, path), undefined));
  }
  it("can be symbolic links", () => {
    assert.equal(resolveInside([join(top, "other name")], cwd, "a.ts"), join(cwd, "a.ts"));
    assert.equal(resolveInside([], cwd, "a.ts"), undefined);
  });
});
