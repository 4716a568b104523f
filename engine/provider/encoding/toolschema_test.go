package encoding_test

import (
	"testing"

	"lashd/engine/provider/encoding"
	"lashd/rpc/protocol"
)

func TestSchema(t *testing.T) {
	for _, c := range []struct{ name, schema, want string }{
		{"none", ``, `{"type":"object","properties":{}}`},
		{"true", `true`, `{"type":"object","properties":{}}`},
		{"an object keeps its bytes", `{"type": "object", "required":["b"], "properties":{"b":{"anyOf":[{"const":1}]},"a":{}}}`, `{"type": "object", "required":["b"], "properties":{"b":{"anyOf":[{"const":1}]},"a":{}}}`},
		{"an object without properties", `{"type":"object"}`, `{"properties":{},"type":"object"}`},
		{"no type", `{"properties":{"a":{"type":"string"}}}`, `{"properties":{"a":{"type":"string"}},"type":"object"}`},
		{"several types", `{"type":["object","null"],"properties":{}}`, `{"properties":{},"type":"object"}`},
		{
			"one of several properties", `{"type":"object","properties":{"a":{},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}],"required":["c"]}`,
			`{"properties":{"a":{},"b":{}},"required":["c"],"type":"object"}`,
		},
		{
			"alternatives", `{"oneOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"a":{"type":"integer"},"b":{}}}],"description":"d","additionalProperties":false}`,
			`{"additionalProperties":false,"description":"d","properties":{"a":{"type":"string"},"b":{}},"type":"object"}`,
		},
		{
			"all of several schemas", `{"allOf":[{"properties":{"a":{}},"required":["a","a"]},{"properties":{"b":{}},"required":["b"]},true]}`,
			`{"properties":{"a":{},"b":{}},"required":["a","b"],"type":"object"}`,
		},
		{
			"a reference", `{"$ref":"#/definitions/x~1y","definitions":{"x/y":{"type":"object","properties":{"a":{"$ref":"#/definitions/z"}},"required":["a"]},"z":{"type":"string"}}}`,
			`{"definitions":{"x/y":{"type":"object","properties":{"a":{"$ref":"#/definitions/z"}},"required":["a"]},"z":{"type":"string"}},"properties":{"a":{"$ref":"#/definitions/z"}},"required":["a"],"type":"object"}`,
		},
		{"a cycle", `{"$ref":"#/$defs/x","$defs":{"x":{"$ref":"#/$defs/x","properties":{"n":{"maximum":12345678901234567890}}}}}`, `{"$defs":{"x":{"$ref":"#/$defs/x","properties":{"n":{"maximum":12345678901234567890}}}},"properties":{"n":{"maximum":12345678901234567890}},"type":"object"}`},
		{"a reference elsewhere", `{"$ref":"https://x.test/y"}`, `{"properties":{},"type":"object"}`},
		{"neither", `{"type":"object","not":{"required":["a"]},"properties":{"a":{}}}`, `{"properties":{"a":{}},"type":"object"}`},
	} {
		t.Run("part9/schema "+c.name, func(t *testing.T) {
			for range 5 { // in the same order each time
				got := string(encoding.Schema(&protocol.ToolManifest{Input: []byte(c.schema)}))
				if got != c.want {
					t.Fatalf("got  %s\nwant %s", got, c.want)
				}
			}
		})
	}
}

func TestGoogleSchema(t *testing.T) {
	const fine = `{"type":"object", "properties":{"const":{"type":["string","null"],"enum":["a"]},"$ref":{"items":{"$ref":"#/$defs/x"},"additionalProperties":false}},"$defs":{"x":{"minimum":1e3}}}`
	for _, c := range []struct{ name, schema, want string }{
		{"a documented schema keeps its bytes, and properties may have any name", fine, fine},
		{"a constant", `{"properties":{"a":{"const":"x"},"b":{"anyOf":[{"const":-1.50},{"const":null}]}}}`, `{"properties":{"a":{"enum":["x"]},"b":{"anyOf":[{"enum":[-1.50]},{"const":null}]}}}`},
		{"a constant and its list", `{"const":"x","enum":["x","y"]}`, `{"const":"x","enum":["x","y"]}`},
		{"a described reference", `{"properties":{"a":{"$ref":"#/$defs/x","description":"d"}}}`, `{"properties":{"a":{"anyOf":[{"$ref":"#/$defs/x"}],"description":"d"}}}`},
		{"a reference beside alternatives", `{"items":{"$ref":"#/$defs/x","$id":"i","anyOf":[{}],"title":"t"}}`, `{"items":{"$id":"i","$ref":"#/$defs/x"}}`},
		{"an older name of definitions", `{"properties":{"a":{"$ref":"#/definitions/x"}},"definitions":{"x":{"const":2}}}`, `{"$defs":{"x":{"enum":[2]}},"properties":{"a":{"$ref":"#/$defs/x"}}}`},
		{"no schema", `true`, `true`},
	} {
		t.Run("part9/schema of Google: "+c.name, func(t *testing.T) {
			for range 5 {
				if got := string(encoding.GoogleSchema([]byte(c.schema))); got != c.want {
					t.Fatalf("got  %s\nwant %s", got, c.want)
				}
			}
		})
	}
}
