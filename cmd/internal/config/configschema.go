package config

import (
	_ "embed"
	"encoding/json"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"lashd/rpc/protocol"
)

// Schema is the generated JSON Schema of config.toml, which lashd schema
// config prints. The generator in rpc/internal/gen writes it.
//
//go:embed config.schema.json
var Schema []byte

// SchemaOf generates the JSON Schema of config.toml from its Go types. docs
// has the comments of the types and fields, which become the descriptions. The
// generator in rpc/internal/gen calls it.
func SchemaOf(docs map[string]protocol.TypeDoc) []byte {
	s := tableSchema(reflect.TypeFor[Config](), docs)
	s.Schema, s.Title, s.Description = "https://json-schema.org/draft/2020-12/schema", "config.toml", "Settings of the lashd daemon. All keys are optional. The daemon reads the file when it starts."
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic("encode our own types: " + err.Error())
	}
	return append(text, '\n')
}

// tableSchema returns the schema of a table, which allows no other keys. Integers
// with a range also allow 0, which means the default or no limit.
func tableSchema(t reflect.Type, docs map[string]protocol.TypeDoc) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
	for f := range t.Fields() {
		key := f.Tag.Get("toml")
		p := settingSchema(f.Type, docs)
		p.Description = docs[t.Name()].Fields[key]
		switch from, to := boundsOf(f); {
		case to > 0 && p.Type == "number":
			p.Minimum, p.Maximum = new(float64(from)), new(float64(to))
		case to > 0:
			p.AnyOf = []*jsonschema.Schema{{Const: jsonschema.Ptr[any](0)}, {Minimum: new(float64(from)), Maximum: new(float64(to))}}
		}
		if f.Tag.Get("required") != "" {
			s.Required = append(s.Required, key)
		}
		s.Properties[key] = p
		s.PropertyOrder = append(s.PropertyOrder, key)
	}
	return s
}

// settingSchema returns the schema of a setting by its Go type. Pointers have the
// schema of their element.
func settingSchema(t reflect.Type, docs map[string]protocol.TypeDoc) *jsonschema.Schema {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[duration]():
		return &jsonschema.Schema{Type: "string"}
	case words[t] != nil:
		return &jsonschema.Schema{Type: "string", Enum: anys(words[t])}
	}
	switch t.Kind() {
	case reflect.Struct:
		return tableSchema(t, docs)
	case reflect.Slice:
		return &jsonschema.Schema{Type: "array", Items: settingSchema(t.Elem(), docs)}
	case reflect.Map:
		if t.Elem().Kind() != reflect.Interface {
			return &jsonschema.Schema{Type: "object", AdditionalProperties: settingSchema(t.Elem(), docs)}
		}
		return &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Type: "object"}}
	case reflect.String:
		return &jsonschema.Schema{Type: "string"}
	case reflect.Bool:
		return &jsonschema.Schema{Type: "boolean"}
	case reflect.Float64:
		return &jsonschema.Schema{Type: "number"}
	}
	return &jsonschema.Schema{Type: "integer"}
}

// anys converts words for use in a schema.
func anys(words []string) (all []any) {
	for _, word := range words {
		all = append(all, word)
	}
	return all
}
