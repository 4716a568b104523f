import { strict as assert } from "node:assert";
import { parseRule, ruleGroups, ruleNote, ruleText, verdictText } from "../../src/model/rules";
import type { ListedRule } from "../../src/protocol";

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

  it("are in groups by their origin, those that a person made first", () => {
    const all: ListedRule[] = [
      { level: "session", rule: { tool: "editor_reveal", action: "allow" }, from: "settings" },
      { level: "session", rule: { tool: "patch", action: "ask" }, from: "settings" },
      { level: "workspace", rule: { command: "npm test", action: "allow" }, from: "answer", ruleId: "rul_1" },
      { level: "user", rule: { tool: "editor_reveal", action: "allow" }, from: "config.toml" },
    ];
    assert.deepEqual(ruleGroups(all).map(({ title, rules }) => [title, ...rules.map((rule) => `${ruleText(rule)} (${ruleNote(rule)})`)]), [
      ["your rules", "allow command npm test (in this workspace \u00b7 from your answer)", "allow tool editor_reveal (everywhere \u00b7 config.toml)"],
      ["from the mode and other settings of the session", "ask tool patch (in this session)"],
      ["from the extension, for its tools that only read", "allow tool editor_reveal (in this session)"],
    ]);
    assert.deepEqual(ruleGroups([]), []);
  });

  it("describe a verdict", () => {
    const reason = { by: "rule" as const, text: "The rule `deny host example.com` of the user decides." };
    assert.equal(verdictText({ decision: "deny", reason, commands: [{ command: "curl example.com", reason }] }), "lashd would deny it. The rule `deny host example.com` of the user decides. The command that decides: curl example.com");
  });
});
