import { strict as assert } from "node:assert";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { editorPath, FolderLinks, isDocumentInside, leadsOut, resolveInside, sessionPath } from "../../src/model/folders";
import { isInFolders } from "../../src/model/sessions";
import { session } from "./turn";

describe("issue/6-1 folders of editor tools", () => {
  const top = mkdtempSync(join(tmpdir(), "folders-"));
  const open = join(top, "open");
  const cwd = join(open, "sub");
  mkdirSync(join(open, "sub", "..well"), { recursive: true });
  mkdirSync(join(top, "openly"));
  writeFileSync(join(top, "secret"), "");
  symlinkSync(top, join(open, "out"));
  const link = join(top, "other name");
  symlinkSync(open, link);
  const inside = (paths: string[], path: string) => resolveInside(new FolderLinks().resolve(paths), cwd, path);
  after(() => rmSync(top, { recursive: true }));

  const good = ["a.ts", "../b.ts", "..well/c.ts", "new/d.ts", open, join(open, "sub", "..", "b.ts")];
  for (const path of good) {
    it(`contain ${path.replace(top, "")}`, () => assert.ok(inside([open], path)?.startsWith(open)));
  }
  const bad = ["../../secret", join(open, "..", "secret"), "../out/secret", "../out/new", join(top, "openly", "a"), top, "/"];
  for (const path of bad) {
    it(`do not contain ${path.replace(top, "")}`, () => assert.equal(inside([open], path), undefined));
  }
  it("part13 tell a link that leads out of them from other files", () => {
    const folders = new FolderLinks().resolve([open, link]);
    const at = (path: string) => leadsOut(folders, path);
    assert.equal(at(join(open, "out", "secret")), join(top, "secret"));
    assert.equal(at(join(link, "out", "secret")), join(top, "secret"));
    assert.deepEqual([join(cwd, "a.ts"), join(link, "sub", "a.ts"), join(top, "secret")].map(at), [undefined, undefined, undefined]);
  });
  it("part13 tell their documents from others, such as those without a file", () => {
    const folders = new FolderLinks().resolve([link]);
    const at = (fsPath: string, scheme = "file") => isDocumentInside(folders, { scheme, fsPath });
    assert.deepEqual([at(join(link, "sub", "a.ts")), at(join(cwd, "a.ts"))], [true, true]);
    assert.deepEqual([at(join(top, "secret")), at(join(link, "out", "secret")), at(join(cwd, "a.ts"), "untitled"), at("/settings.json", "vscode-userdata")], [false, false, false, false]);
  });
  it("contain nothing if no folder is open", () => assert.equal(inside([], "a.ts"), undefined));

  it("have the sessions of their directory if they were opened through a symbolic link", () => {
    const real = new FolderLinks().resolve([link]).map((folder) => folder.real);
    assert.deepEqual(real, [open]);
    assert.equal(isInFolders({ ...session, cwd }, real), true);
    assert.equal(isInFolders({ ...session, cwd: join(top, "openly") }, real), false);
  });

  it("have one path for a file in the editor and one in the session if they were opened through a symbolic link", () => {
    const folders = new FolderLinks().resolve([link]);
    const document = join(link, "sub", "a.ts");
    assert.equal(inside([link], "a.ts"), document);
    assert.equal(editorPath(folders, join(cwd, "a.ts")), document);
    assert.equal(sessionPath(folders, document), join(cwd, "a.ts"));
    assert.equal(editorPath(folders, open), link);
    for (const other of [join(top, "secret"), join(top, "openly", "a")]) {
      assert.deepEqual([editorPath(folders, other), sessionPath(folders, other)], [other, other]);
    }
  });

  it("keep the path of a file if its folder is also open without the symbolic link", () => {
    const folders = new FolderLinks().resolve([link, open]);
    assert.equal(editorPath(folders, join(cwd, "a.ts")), join(cwd, "a.ts"));
  });

  it("have the path of the session for a file if the symbolic link through which they were opened leads elsewhere now", () => {
    const changed = join(top, "changed");
    symlinkSync(open, changed);
    const links = new FolderLinks();
    links.resolve([changed]);
    rmSync(changed);
    symlinkSync(top, changed);
    assert.equal(resolveInside(links.resolve([changed]), cwd, "a.ts"), join(cwd, "a.ts"));
  });

  it("do not follow a symbolic link that replaces them later", () => {
    const moved = join(top, "moved");
    mkdirSync(moved);
    const links = new FolderLinks();
    assert.deepEqual(links.resolve([moved]), [{ path: moved, real: moved }]);
    rmSync(moved, { recursive: true });
    symlinkSync(top, moved);
    assert.deepEqual(links.resolve([moved]), [{ path: moved, real: moved }]);
    assert.equal(resolveInside(links.resolve([moved]), moved, "secret"), undefined);
  });
});
