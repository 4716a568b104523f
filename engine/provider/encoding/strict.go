package encoding

import (
	"encoding/json"
	"slices"
)

// strictDepth bounds how deep Strict looks; OpenAI takes ten levels.
const strictDepth = 10

// strictWords are the keywords that Strict accepts, besides those that it checks itself.
var strictWords = []string{"type", "title", "description", "enum", "const", "items", "anyOf", "properties", "required", "additionalProperties"}

// strictSchema is what Strict reads of a schema.
type strictSchema struct {
	Type       json.RawMessage            `json:"type"` // a string or a list of strings
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
	Additional *bool                      `json:"additionalProperties"` // nil: absent, which allows other properties
	Items      json.RawMessage            `json:"items"`
	AnyOf      []json.RawMessage          `json:"anyOf"`
}

// Strict reports whether OpenAI and Anthropic can enforce a schema: its root is an object, each object lists all of its properties as required and
// allows no others, and there are only simple keywords. Servers reject other schemas if a request asks them to be strict. When in doubt
// the answer is no: the schema is then at most a hint to the server, and lashd validates the reply.
func Strict(schema json.RawMessage) bool {
	var root strictSchema
	return json.Unmarshal(schema, &root) == nil && string(root.Type) == `"object"` && root.AnyOf == nil && strict(schema, 1)
}

// strict checks one schema at a depth.
func strict(raw json.RawMessage, depth int) bool {
	var words map[string]json.RawMessage
	var s strictSchema
	if depth > strictDepth || json.Unmarshal(raw, &words) != nil || json.Unmarshal(raw, &s) != nil {
		return false
	}
	for word := range words {
		if !slices.Contains(strictWords, word) {
			return false
		}
	}
	if string(s.Type) == `"object"` || s.Properties != nil {
		return closed(&s, depth)
	}
	if string(s.Type) == `"array"` && s.Items == nil || s.Type == nil && s.AnyOf == nil && words["enum"] == nil && words["const"] == nil {
		return false
	}
	return (s.Items == nil || strict(s.Items, depth+1)) && !slices.ContainsFunc(s.AnyOf, func(one json.RawMessage) bool { return !strict(one, depth+1) })
}

// closed checks an object: it requires all of its properties and allows no others.
func closed(s *strictSchema, depth int) bool {
	if s.Additional == nil || *s.Additional || len(s.Required) != len(s.Properties) {
		return false
	}
	for name, property := range s.Properties {
		if !slices.Contains(s.Required, name) || !strict(property, depth+1) {
			return false
		}
	}
	return true
}
