package tool

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	check := func(schema, args string) error {
		k := offers("a")
		k.tools[0].Manifest.Input = json.RawMessage(schema)
		_, err := registry(t, "p", k).Catalog().Admit("a", json.RawMessage(args))
		return err
	}
	const strict = `{"type":"object","properties":{"path":{"type":"string","minLength":1},"n":{"type":"integer"}},"required":["path"],"additionalProperties":false}`
	const open = `{"type":"object","properties":{"path":{"type":"string"}}}`
	const tree = `{"$defs":{"node":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/node"}}},"additionalProperties":false}},"$ref":"#/$defs/node"}`

	t.Run("runtime/T08 matching arguments are accepted", func(t *testing.T) {
		for _, c := range [][2]string{
			{strict, `{"path":"x"}`}, {strict, ` {"path":"x","n":3.0} `}, {open, `{"path":"x","more":1}`}, {open, `{}`},
			{``, `{}`}, {``, `{"x":1}`}, {tree, `{"kids":[{"kids":[]},{}]}`}, {`true`, `{}`},
			{`{"properties":{"$ref":{"type":"string"},"$id":{"type":"string"}}}`, `{"$ref":"#"}`},
			{`{"definitions":{"a/b":{"type":"string"}},"properties":{"x":{"$ref":"#/definitions/a~1b"}}}`, `{"x":"y"}`},
			{`{"$defs":{"a b":{"type":"string"}},"properties":{"x":{"$ref":"#/$defs/a%20b"}}}`, `{"x":"y"}`},
			{`{"$schema":"http://json-schema.org/draft-07/schema#","anyOf":[{"$ref":"#/definitions/a"},{"$ref":"#/definitions/a"}],"definitions":{"a":{}}}`, `{}`},
		} {
			if err := check(c[0], c[1]); err != nil {
				t.Errorf("%s with schema %s: %v", c[1], c[0], err)
			}
		}
	})

	t.Run("runtime/T08 arguments that do not match are rejected", func(t *testing.T) {
		for _, c := range [][2]string{
			{strict, `{}`}, {strict, `{"path":""}`}, {strict, `{"path":1}`}, {strict, `{"path":"x","n":1.5}`}, {strict, `{"path":"x","more":1}`},
			{strict, `{"path":"x"} {}`}, {strict, `{"path":`}, {strict, ``}, {strict, `null`}, {strict, `[]`},
			{``, `[]`}, {``, `"x"`}, {``, ``}, {tree, `{"kids":[{"x":1}]}`}, {`false`, `{}`},
		} {
			if err := check(c[0], c[1]); err == nil {
				t.Errorf("%q with schema %s is accepted", c[1], c[0])
			}
		}
	})

	t.Run("runtime/T08 an invalid schema fails the calls of its tool", func(t *testing.T) {
		for _, schema := range []string{
			`{"broken`, `[]`, `{"type":5}`, `{"type":"objekt"}`, `{"properties":{"x":{"type":["int","null"]}}}`, `{"anyOf":[{"items":{"type":"text"}}]}`,
			`{"$ref":"#/$defs/none"}`, `{"$ref":"https://example.com/x"}`, `{"pattern":"("}`,
			// Validation with these would not terminate.
			`{"$ref":"#"}`,
			`{"allOf":[{"$ref":"#"}]}`,
			`{"not":{"anyOf":[{"type":"string"},{"$ref":"#"}]}}`,
			`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"if":{"$ref":"#/$defs/a"}}},"properties":{"x":{"$ref":"#/$defs/a"}}}`,
			`{"dependentSchemas":{"x":{"$ref":"#"}}}`,
			`{"$defs":{"a b":{"$ref":"#/$defs/a%20b"}},"$ref":"#/$defs/a%20b"}`,
			`{"$dynamicAnchor":"a","$dynamicRef":"#a"}`,
			`{"$anchor":"a","$ref":"#a"}`,
			`{"$id":"https://x/y","$ref":"https://x/y"}`,
			`{"properties":{"p":{"$id":"https://x/p","$ref":"#"}}}`,
		} {
			if err := CheckSchema(json.RawMessage(schema)); err == nil {
				t.Errorf("%s is accepted", schema)
			}
			if err := check(schema, `{"x":{}}`); err == nil || !strings.Contains(err.Error(), "schema") && !strings.Contains(err.Error(), "resolv") {
				t.Errorf("a call with schema %s: %v", schema, err)
			}
		}
		for _, good := range []string{``, strict, open, tree, `{"properties":{"type":{"enum":[{"type":"none"}],"default":{"type":"x"}}}}`} {
			if err := CheckSchema(json.RawMessage(good)); err != nil {
				t.Errorf("%s: %v", good, err)
			}
		}
	})
}

func TestErrorsShowJSON(t *testing.T) {
	for _, c := range []struct{ schema, value, want string }{
		{`{"enum": [{"a": 1}, [2, "x"], "b", null]}`, `{"c": {"d": []}}`, `enum: {"c":{"d":[]}} does not equal any of: [{"a":1} [2,"x"] b null]`},
		{`{"properties": {"p": {"items": {"enum": [{}, {"k": null}]}}}}`, `{"p": [null]}`, `enum: null does not equal any of: [{} {"k":null}]`},
		{`{"anyOf": [{"const": {"k": [1]}}]}`, `[{}]`, `const: [{}] does not equal {"k":[1]}`},
		{`{"type": "string"}`, `{"k": {}}`, `type: {"k":{}} has type "object", want "string"`},
	} {
		t.Run("outside/21 "+c.want, func(t *testing.T) {
			err := Checker(json.RawMessage(c.schema))(json.RawMessage(c.value))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "map[") {
				t.Errorf("%s for %s: %v, want %q", c.value, c.schema, err, c.want)
			}
		})
	}
	t.Run("outside/21 constants that are objects and arrays still match", func(t *testing.T) {
		schema := `{"items": {"enum": [{"a": [1]}, []]}, "uniqueItems": true}`
		if err := Fits(json.RawMessage(schema), json.RawMessage(`[{"a": [1.0]}, []]`)); err != nil {
			t.Error(err)
		}
		if err := Fits(json.RawMessage(schema), json.RawMessage(`[[], []]`)); err == nil {
			t.Error("two equal items are unique")
		}
	})
	t.Run("outside/21 an empty schema accepts everything", func(t *testing.T) {
		if err := Checker(nil)(json.RawMessage(`[1]`)); err != nil {
			t.Error(err)
		}
	})
}
