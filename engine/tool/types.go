package tool

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// types are those of JSON Schema. The validator takes any, and then no value fits.
var types = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// Keywords that hold schemas: by name, and one or a list.
var (
	namedSchemas = []string{"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
	someSchemas  = []string{
		"additionalItems", "additionalProperties", "allOf", "anyOf", "contains", "else", "if", "items", "not", "oneOf", "prefixItems",
		"propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
	}
)

// checkTypes refuses a schema with a type that does not exist.
func checkTypes(raw json.RawMessage) error {
	var root any
	if err := json.Unmarshal(raw, &root); err != nil {
		return err
	}
	return checkTypesAt("", root)
}

func checkTypesAt(at string, v any) error {
	schema, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	said, ok := schema["type"].([]any)
	if !ok {
		said = []any{schema["type"]}
	}
	for _, t := range said {
		if name, ok := t.(string); ok && !slices.Contains(types, name) {
			return fmt.Errorf("schema: at %q: there is no type %q: it is one of %s", "#"+at+"/type", name, strings.Join(types, ", "))
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

// subschemas are the schemas that a schema holds, by their places there.
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
