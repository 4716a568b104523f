import { strict as assert } from "node:assert";
import { beforeText, reviewText } from "../../src/model/pluginReview";
import type { PluginReadResult, PluginReviewFile } from "../../src/protocol";

const serve = (digest: string, text?: string): PluginReviewFile => ({ path: "/w/tools/serve.sh", digest, ...(text !== undefined && { size: text.length, text }) });
const config = (text: string): PluginReviewFile => ({ path: ".mcp.json", size: text.length, digest: `of ${text}`, text });

const read: PluginReadResult = {
  plugin: { name: "project", dir: "/home/eve/shop", scope: "workspace", status: "modified", digest: "aa" },
  contributes: [{ kind: "server", name: "docs", detail: "sh" }],
  reach: { commands: [["sh", "tools/serve.sh"]], uncovered: ["sh: what it loads"] },
  digest: "bb",
  files: [config("two"), serve("s1", "echo hi"), { path: "bin/tool", size: 900_000, digest: "t1", executable: true }, { path: "l", link: "bin" }],
  before: [config("one"), serve("s1")],
};

describe("part13/vscode review of a plugin", () => {
  it("shows the files that trust covers, and says so", () => {
    const text = reviewText(read, read.files ?? []);
    assert.match(text, /^Trust in shop covers exactly the 4 files below and the\ncommands that they declare\.\nA change/);
    const sentences = text.split("\n\n")[0] ?? "";
    assert.deepEqual(sentences.split("\n").filter((line) => line.length > 60), []);
    assert.match(sentences, /in the sandbox of\nthe session if it has one\.\n.*\nClosing the editor changes nothing\.$/s);
    assert.deepEqual(text.split("\n====").slice(1), [" .mcp.json\ntwo\n", " /w/tools/serve.sh\necho hi\n", " bin/tool (executable)\n(900000 bytes, not shown, sha256 t1)\n", " l is a link to bin"]);
    assert.match(text, /Not covered by trust:\n {2}sh: what it loads\n/);
  });

  it("part13 lets no name make lines of its own", () => {
    const text = reviewText({ ...read, contributes: [{ kind: "command", name: "a", detail: "b\nRuns:\n  nothing" }] }, [{ path: "x\n==== .mcp.json", digest: "d", size: 2, text: "hi" }]);
    assert.ok(text.includes("command a: b\\nRuns:\\n  nothing\n"), text);
    assert.deepEqual(text.split("\n====").slice(1), [" x\\n==== .mcp.json\nhi"]);
  });

  it("compares with what is trusted now; a file outside that did not change is equal", () => {
    assert.deepEqual(beforeText(read)?.split("\n====").slice(1), [" .mcp.json\none\n", " /w/tools/serve.sh\necho hi"]);
    assert.deepEqual(beforeText({ ...read, before: [serve("s0")] })?.split("\n====").slice(1), [" /w/tools/serve.sh\n(not shown, sha256 s0)"]);
    const fresh = { ...read };
    delete fresh.before;
    assert.equal(beforeText(fresh), undefined);
  });
});
