import { strict as assert } from "node:assert";
import { parseRule, ruleText, verdictText } from "../../src/model/rules";

describe("part/11 rules in words", () => {
  it("are parsed and written the same", () => {
    for (const [words, rule] of [
      ["allow command go test", { action: "allow", command: "go test" }],
      ["deny path **/.env", { action: "deny", path: "**/.env" }],
      ["ask host *.github.com:443", { action: "ask", host: "*.github.com:443" }],
      ["deny tool mcp_*", { action: "deny", tool: "mcp_*" }],
    ] as const) {
      assert.deepEqual(parseRule(` ${words.replace(" ", "  ")} `), rule);
      assert.equal(ruleText({ rule }), words);
    }
  });

  it("refuse what is no rule", () => {
    for (const words of ["", "allow", "allow command", "maybe command ls", "allow program ls"]) {
      assert.equal(parseRule(words), undefined, words);
    }
  });

  it("describe a verdict", () => {
    const reason = { by: "rule" as const, text: "The rule `deny host example.com` of the user decides." };
    assert.equal(verdictText({ decision: "deny", reason, commands: [{ command: "curl example.com", reason }] }), "lashd would deny it. The rule `deny host example.com` of the user decides. The command that decides: curl example.com");
  });
});
