package encoding

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// GoogleSchema returns a schema in the form that Google's API documents: it ignores most keywords that it does not know, but a reference
// must stand alone and name one of $defs, and a constant is known as a list of one value. A schema that needs no change keeps its bytes.
func GoogleSchema(schema []byte) []byte {
	if changed, ok := google(schema); ok {
		return changed
	}
	return schema
}

// Keywords whose value is a schema, a list of schemas, or an object of schemas by name.
var (
	oneSchema    = []string{"items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames"}
	schemaList   = []string{"anyOf", "oneOf", "allOf", "prefixItems"}
	schemaByName = []string{"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"}
)

// google returns a changed schema, or reports that it needs no change. A value that is not an object, such as false, is no schema here.
func google(raw json.RawMessage) (json.RawMessage, bool) {
	s := words(raw)
	changed := false
	for _, word := range slices.Sorted(maps.Keys(s)) {
		if value, ok := googleWord(word, s[word]); ok {
			s[word], changed = value, true
		}
	}
	changed = s.nameDefinitions() || changed
	changed = s.enumerate() || changed
	changed = s.isolate() || changed
	if !changed {
		return nil, false
	}
	return encoded(s), true
}

// googleWord changes the schemas in the value of a keyword.
func googleWord(word string, value json.RawMessage) (json.RawMessage, bool) {
	switch {
	case slices.Contains(oneSchema, word):
		return google(value)
	case slices.Contains(schemaList, word):
		var list []json.RawMessage
		if json.Unmarshal(value, &list) != nil {
			return nil, false
		}
		changed := false
		for i := range list {
			if one, ok := google(list[i]); ok {
				list[i], changed = one, true
			}
		}
		return encoded(list), changed
	case slices.Contains(schemaByName, word):
		named := words(value)
		changed := false
		for name := range named {
			if one, ok := google(named[name]); ok {
				named[name], changed = one, true
			}
		}
		return encoded(named), changed
	}
	return nil, false
}

// nameDefinitions moves definitions, their name in older drafts, to $defs, and references with them.
func (s schemaWords) nameDefinitions() bool {
	changed := false
	if s.has("definitions") && !s.has("$defs") {
		s["$defs"], changed = s["definitions"], true
		delete(s, "definitions")
	}
	var path string
	if json.Unmarshal(s["$ref"], &path) != nil {
		return changed
	}
	if name, ok := strings.CutPrefix(path, "#/definitions/"); ok {
		s["$ref"], changed = encoded("#/$defs/"+name), true
	}
	return changed
}

// enumerate writes a constant string or number as a list of one value. The API takes no others.
func (s schemaWords) enumerate() bool {
	constant := s["const"]
	if len(constant) == 0 || s.has("enum") || !strings.ContainsRune(`"-0123456789`, rune(constant[0])) {
		return false
	}
	s["enum"] = slices.Concat(json.RawMessage("["), constant, json.RawMessage("]"))
	delete(s, "const")
	return true
}

// isolate moves a reference that has other keywords beside it into an anyOf, so that it stands alone. If there is an anyOf already, the
// other keywords are left out.
func (s schemaWords) isolate() bool {
	if !s.has("$ref") {
		return false
	}
	beside := func(word string, _ json.RawMessage) bool { return !strings.HasPrefix(word, "$") }
	before := len(s)
	if s.has("anyOf") {
		maps.DeleteFunc(s, beside)
		return len(s) < before
	}
	for word := range s {
		if beside(word, nil) {
			s["anyOf"] = slices.Concat(json.RawMessage(`[{"$ref":`), s["$ref"], json.RawMessage(`}]`))
			delete(s, "$ref")
			return true
		}
	}
	return false
}
