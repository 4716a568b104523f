import { strict as assert } from "node:assert";
import { readFileSync } from "node:fs";
import { mentionsIn, written } from "../../src/model/resourceMentions";
import { resourceSuggestions, templateValuesAt, valueSuggestions } from "../../src/model/resources";
import { variableOf, withValue } from "../../src/model/resourceTemplates";
import type { MCPResourcesResult, ResourceInfo } from "../../src/protocol";

/** examples are those of docs/mcp.md for all clients. */
const examples = JSON.parse(readFileSync("../../internal/mcpinput/testdata/mentions.json", "utf8")) as { known: MCPResourcesResult; examples: { text: string; mentions: string[] }[] };

const listed: ResourceInfo[] = [
  { server: "docs", uri: "doc://guide", name: "guide", title: "The guide" },
  { server: "docs", uri: "doc://my notes", name: "notes" },
  { server: "docs", uri: "doc://page/{chapter}/{page}", name: "page", template: true },
  { server: "other", uri: "doc://guide", name: "guide" },
];

describe("part13/6 resources of MCP servers", () => {
  for (const { text, mentions } of examples.examples) {
    it(`are mentioned in ${JSON.stringify(text)} as in all clients`, () => {
      assert.deepEqual(mentionsIn(text, examples.known).map(({ server, uri }) => `${server} ${uri}`), mentions);
    });
  }

  it("are at most 16, each with the word that names it", () => {
    const many = Array.from({ length: 20 }, (_, n) => `@docs:doc://books/${n}`).join(" ");
    assert.equal(mentionsIn(many, examples.known).length, 16);
    const words = mentionsIn('(@docs:doc://guide), @"docs:doc://my notes"', examples.known).map(({ word }) => word);
    assert.deepEqual(words, ["@docs:doc://guide", '@"docs:doc://my notes"']);
    assert.deepEqual(words, [written({ server: "docs", uri: "doc://guide" }), written({ server: "docs", uri: "doc://my notes" })]);
  });

  it("are suggested by their address, then by a part of their name", () => {
    const shown = (word: string) => resourceSuggestions(word, listed).map(({ label, insert, open }) => [label, insert, ...(open ? ["open"] : [])].join(" "));
    assert.deepEqual(shown("docs:doc://g"), ["The guide @docs:doc://guide"]);
    assert.deepEqual(shown("notes"), ['notes @"docs:doc://my notes"']);
    assert.deepEqual(shown("PAGE"), ["page @docs:doc://page/ open"]);
    assert.deepEqual(shown("other"), ["guide @other:doc://guide"]);
    assert.deepEqual(shown("nothing"), []);
    assert.equal(shown("").length, 4);
  });

  it("have the variables of their templates completed one after the other", () => {
    const at = (text: string) => variableOf("doc://page/{chapter}/{+page}", text);
    assert.deepEqual(at("doc://page/o%20n"), { name: "chapter", value: "o n", others: {}, before: "doc://page/", after: "/", reserved: false, last: false });
    const second = at("doc://page/one/");
    assert.deepEqual(second, { name: "page", value: "", others: { chapter: "one" }, before: "doc://page/one/", after: "", reserved: true, last: true });
    assert.equal(second && withValue(second, "a b/c"), "doc://page/one/a%20b/c");
    assert.deepEqual([at("doc://pag"), variableOf("a{?b}", "a"), variableOf("a", "a"), variableOf("{a,b}", "x")], [undefined, undefined, undefined, undefined]);
    const suggested = (word: string, values: string[]) => templateValuesAt(word, listed).flatMap((asked) => valueSuggestions(asked, values)).map(({ label, insert, open }) => [label, insert, ...(open ? ["open"] : [])].join(" "));
    assert.deepEqual(suggested("docs:doc://page/o", ["one/two", "o"]), ["one/two @docs:doc://page/one%2Ftwo/ open"]);
    assert.deepEqual(suggested("docs:doc://page/one/", ["7"]), ["7 @docs:doc://page/one/7"]);
    assert.deepEqual(suggested("other:doc://page/one/", ["7"]), []);
  });
});
