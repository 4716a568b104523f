package tool

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// types lists the types of JSON Schema. The validator accepts any string as a type, and then no value matches, so a
// typo in a manifest would make every call fail.
var types = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// Keywords that contain schemas: as an object of schemas, and as one schema or a list.
var (
	namedSchemas = []string{"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
	someSchemas  = []string{
		"additionalItems", "additionalProperties", "allOf", "anyOf", "contains", "else", "if", "items", "not", "oneOf", "prefixItems",
		"propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
	}
)

// checkTypes rejects a schema with an unknown type anywhere in it. The error names the place as a JSON pointer.
func checkTypes(raw json.RawMessage) error {
	var root any
	if err := json.Unmarshal(raw, &root); err != nil {
		return err
	}
	return checkTypesAt("", root)
}

// checkTypesAt checks the schema at a place, a JSON pointer, and those inside it.
func checkTypesAt(at string, v any) error {
	schema, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	declared, ok := schema["type"].([]any)
	if !ok {
		declared = []any{schema["type"]}
	}
	for _, t := range declared {
		if name, ok := t.(string); ok && !slices.Contains(types, name) {
			return fmt.Errorf("schema: at %q: unknown type %q; use one of %s", "#"+at+"/type", name, strings.Join(types, ", "))
		}
	}
	children := subschemas(schema)
	for _, place := range slices.Sorted(maps.Keys(children)) {
		if err := checkTypesAt(at+place, children[place]); err != nil {
			return err
		}
	}
	return nil
}

// subschemas returns the schemas that a schema contains, by their place relative to it.
func subschemas(schema map[string]any) map[string]any {
	children := map[string]any{}
	for _, key := range namedSchemas {
		named, _ := schema[key].(map[string]any)
		for name, child := range named {
			children["/"+key+"/"+escape(name)] = child
		}
	}
	for _, key := range someSchemas {
		children["/"+key] = schema[key]
		list, _ := schema[key].([]any)
		for i, child := range list {
			children["/"+key+"/"+strconv.Itoa(i)] = child
		}
	}
	return children
}
