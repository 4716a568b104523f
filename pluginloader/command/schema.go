package command

import (
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"

	"lashd/pluginloader/manifest"
)

// schemaOf returns the JSON Schema of a tool's arguments. It allows no other members. The model
// sees the schema, and the engine checks calls against it.
func schemaOf(parameters []manifest.Parameter) (json.RawMessage, error) {
	s := &jsonschema.Schema{
		Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
	for _, p := range parameters {
		s.Properties[p.Name] = propertyOf(p)
		s.PropertyOrder = append(s.PropertyOrder, p.Name)
		if p.Required {
			s.Required = append(s.Required, p.Name)
		}
	}
	return json.Marshal(s)
}

// propertyOf returns the schema of one parameter.
func propertyOf(p manifest.Parameter) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: string(p.Type), Description: p.Description, Default: p.Default}
	switch p.Type {
	case manifest.TypeString:
		restrict(s, p)
		s.MinLength, s.MaxLength = count(p.Min), count(p.Max)
	case manifest.TypeArray:
		s.Items = &jsonschema.Schema{Type: "string"}
		restrict(s.Items, p)
		s.MinItems, s.MaxItems = count(p.Min), count(p.Max)
	case manifest.TypeInteger, manifest.TypeNumber:
		s.Minimum, s.Maximum = p.Min, p.Max
	}
	return s
}

// restrict adds the allowed values and the pattern of strings to a schema. The pattern must match
// the whole string.
func restrict(s *jsonschema.Schema, p manifest.Parameter) {
	for _, word := range p.Enum {
		s.Enum = append(s.Enum, word)
	}
	if p.Pattern != "" {
		s.Pattern = "^(?:" + p.Pattern + ")$"
	}
}

// count converts a bound of the manifest.
func count(n *float64) *int {
	if n == nil {
		return nil
	}
	return new(int(*n))
}
