import { strict as assert } from "node:assert";
import { excludeGlob, matching, ranked } from "../../src/model/fileList";

const files = (...paths: string[]) => paths.map((path) => ({ path }));
const paths = (found: { path: string }[]) => found.map(({ path }) => path);

describe("part/13 the list of files", () => {
  it("leaves out what the settings exclude", () => {
    assert.equal(excludeGlob({ "**/.git": true, "**/keep": false }, { "**/node_modules": true, "**/when": { when: "x" } }), "{**/.git,**/node_modules}");
    assert.equal(excludeGlob({}), undefined);
  });

  it("is cut after it is sorted: open files first, then those near the root", () => {
    const many = files(...Array.from({ length: 9 }, (_, n) => `a/b/c/${n}.ts`), "z.md", "src/main.ts", "a/b/c/open.ts");
    assert.deepEqual(paths(ranked(many, new Set(["a/b/c/open.ts"]), 3)), ["a/b/c/open.ts", "z.md", "src/main.ts"]);
  });

  it("has a directory of that name before the files in it", () => {
    const all = files("src/order/order.test.ts", "src/order/a.ts", "src/orders/", "src/order/", "order.ts");
    assert.deepEqual(paths(matching(all, "order", 2)), ["src/order/", "src/order/order.test.ts"]);
    assert.deepEqual(paths(matching(all, "order/", 1)), ["src/order/"]);
  });

  it("is searched by name first, then by path, then by letters in order", () => {
    const all = files("docs/user/readme.md", "src/readme/index.ts", "src/main.ts", "lib/model.ts", "src/domain.ts");
    assert.deepEqual(paths(matching(all, "main", 9)), ["src/main.ts", "src/domain.ts"]);
    assert.deepEqual(paths(matching(all, "readme", 9)), ["docs/user/readme.md", "src/readme/index.ts"]);
    assert.deepEqual(paths(matching(all, "mdt", 9)), ["lib/model.ts"]);
    assert.deepEqual(paths(matching(all, "l/mt", 9)), ["lib/model.ts"]);
    assert.deepEqual(matching(files("src/order/total.ts"), "stat", 9), []); // those letters are in its path, far from each other
    assert.deepEqual(paths(matching(all, "", 2)), ["docs/user/readme.md", "src/readme/index.ts"]);
    assert.deepEqual(matching(all, "xyz", 9), []);
  });
});
