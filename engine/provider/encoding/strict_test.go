package encoding_test

import (
	"testing"

	"lashd/engine/provider/encoding"
)

func TestStrict(t *testing.T) {
	for schema, want := range map[string]bool{
		`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":["integer","null"]}},"required":["b","a"],"additionalProperties":false}`:  true,
		`{"type":"object","properties":{},"required":[],"additionalProperties":false}`:                                                              true,
		`{"type":"object","properties":{"a":{"type":"array","items":{"enum":["x","y"]}}},"required":["a"],"additionalProperties":false}`:            true,
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["a"],"additionalProperties":false}`:          true,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}`:                                         false,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`:                                                                   false,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":true}`:                                       false,
		`{"type":"object","properties":{"a":{"type":"string","minLength":1}},"required":["a"],"additionalProperties":false}`:                        false,
		`{"type":"object","properties":{"a":{"oneOf":[{"type":"string"}]}},"required":["a"],"additionalProperties":false}`:                          false,
		`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}}}},"required":["a"],"additionalProperties":false}`: false,
		`{"type":"object","properties":{"a":{"type":"array"}},"required":["a"],"additionalProperties":false}`:                                       false,
		`{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false}`:                                                     false,
		`{"anyOf":[{"type":"object","properties":{},"required":[],"additionalProperties":false}]}`:                                                  false,
		`{"type":"array","items":{"type":"string"}}`:                                                                                                false,
		`true`: false,
		``:     false,
	} {
		t.Run("part9/schema strict "+schema, func(t *testing.T) {
			if got := encoding.Strict([]byte(schema)); got != want {
				t.Errorf("strict is %v, want %v", got, want)
			}
		})
	}
}
