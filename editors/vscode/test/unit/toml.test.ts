import { strict as assert } from "node:assert";
import { describe as said, suggestions } from "../../src/model/toml";

const schema = {
  properties: {
    model: { type: "string", description: "which one" },
    approval: { type: "string", enum: ["ask", "deny"] },
    trace: { type: "boolean" },
    models: { type: "array", description: "one each", items: { type: "object", properties: { id: { type: "string" }, window: { type: "integer", description: "in tokens" } } } },
    undo: { type: "object", properties: { off: { type: "boolean" } } },
    plugins: { type: "object" },
    providers: { type: "object", additionalProperties: { type: "object", properties: { base_url: { type: "string" }, api: { type: "string", enum: ["chat"], description: "of the server" }, key: { type: "object", properties: { env: { type: "string" } } } } } },
  },
};
const labels = (text: string) => {
  const [before = "", after = ""] = text.split("|");
  return suggestions(schema, before, after).map((offer) => offer.label);
};
const top = ["[[models]]", "[undo]", "[plugins.NAME]", "[providers.NAME]"];

describe("issue/6-1 completion in config.toml", () => {
  for (const [text, want] of Object.entries({
    "|": ["model", "approval", "trace", ...top],
    "model = 'x'\n|\ntrace = true\n[undo]\noff = true": ["approval", ...top],
    "mod|": ["model", "approval", "trace", ...top],
    "approval = |": ['"ask"', '"deny"'],
    'approval = "a|"': ['"ask"', '"deny"'],
    "undo.off = t|": ["true", "false"],
    "model = |": [],
    "[|": top,
    "[[mod|]]": top,
    "[undo]\n|": ["off", ...top],
    "[[models]]\nid = 'a'\n[[models]]\nwindow = 3\n|": ["id", ...top],
    "[[models]]\nid = 'a'\n\n|\n[[models]]\nwindow = 3": ["window", ...top],
    "[plugins.guard]\n|": top,
    "[providers.|": top,
    "[providers.acme]\nbase_url = 'x'\n|": ["api", "key", ...top],
    "[providers.acme]\napi = |": ['"chat"'],
    "[providers.acme.key]\n|": ["env", ...top],
    "# appr|": [],
    "model = 'x' |": [],
  })) {
    it(`at | in ${JSON.stringify(text)}`, () => assert.deepEqual(labels(text), want));
  }

  it("inserts snippets with possible values", () => {
    const inserts = suggestions(schema, "", "").map((offer) => offer.insert);
    assert.deepEqual(inserts, ['model = "$1"', 'approval = "${1|ask,deny|}"', "trace = ${1|true,false|}", "[[models]]\n", "[undo]\n", "[plugins.${1:NAME}]\n", "[providers.${1:NAME}]\n"]);
    assert.deepEqual(suggestions(schema, "[providers.acme]\n", "").slice(0, 3).map((offer) => offer.insert), ['base_url = "$1"', 'api = "${1|chat|}"', "key = { $1 }"]);
  });

  it("has descriptions", () => {
    assert.deepEqual(
      ["model = 'x'", "[[models]]", "[[models]]\nid = 'a'\nwindow = 3", "nonsense = 1", "", "# model", "[providers.acme]\napi = 1"].map((text) => said(schema, text)),
      ["which one", "one each", "in tokens", undefined, undefined, undefined, "of the server"],
    );
  });
});
