package manifest

import (
	_ "embed"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"lashd/rpc/protocol"
)

// schemaJSON is generated from the types of this package; a test keeps it up to date.
//
//go:embed schema.json
var schemaJSON []byte

// Schema returns the JSON Schema of plugin.json.
func Schema() []byte { return schemaJSON }

// SchemaOf generates the JSON Schema from the types of this package. docs are their comments, which
// become descriptions.
func SchemaOf(docs map[string]protocol.TypeDoc) []byte {
	m := schemaMaker{docs: docs, defs: map[string]*jsonschema.Schema{}}
	file := m.record(reflect.TypeFor[File]())
	file.Schema, file.Title, file.Defs = "https://json-schema.org/draft/2020-12/schema", "plugin.json", m.defs
	text, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		panic("encode our own types: " + err.Error())
	}
	return append(text, '\n')
}

// schemaMaker collects the definitions of one schema.
type schemaMaker struct {
	docs map[string]protocol.TypeDoc
	defs map[string]*jsonschema.Schema // by type name
}

// record returns the schema of a struct: an object without other fields, except those whose names
// start with "_".
func (m *schemaMaker) record(t reflect.Type) *jsonschema.Schema {
	s := &jsonschema.Schema{
		Type: "object", Description: m.docs[t.Name()].Doc, Properties: map[string]*jsonschema.Schema{},
		PatternProperties: map[string]*jsonschema.Schema{"^_": {}}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
	m.fields(s, t)
	return s
}

// fields adds the fields of a struct, and those of embedded structs.
func (m *schemaMaker) fields(s *jsonschema.Schema, t reflect.Type) {
	for f := range t.Fields() {
		if f.Anonymous {
			m.fields(s, f.Type)
			continue
		}
		name, optional := jsonName(f)
		p := m.value(f.Type, limitsOf(f))
		p.Description = strings.TrimSuffix(m.docs[t.Name()].Fields[name]+". "+p.Description, ". ")
		s.Properties[name] = p
		s.PropertyOrder = append(s.PropertyOrder, name)
		if !optional {
			s.Required = append(s.Required, name)
		}
	}
}

// value returns the schema of a field's type with the limits of its tags.
func (m *schemaMaker) value(t reflect.Type, l limits) *jsonschema.Schema {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == rawJSON {
		return &jsonschema.Schema{}
	}
	if w, ok := reflect.Zero(t).Interface().(worded); ok {
		return m.words(w)
	}
	switch t.Kind() {
	case reflect.Struct:
		return m.reference(t)
	case reflect.Slice:
		return &jsonschema.Schema{Type: "array", Items: m.value(t.Elem(), l.ofElement()), MinItems: count(l.min, l.hasMin), MaxItems: count(l.max, l.hasMax)}
	case reflect.Map:
		return m.table(t, l)
	case reflect.String:
		return &jsonschema.Schema{Type: "string", MinLength: count(l.min, l.hasMin), MaxLength: count(l.max, l.hasMax), Pattern: l.pattern()}
	case reflect.Bool:
		return &jsonschema.Schema{Type: "boolean"}
	case reflect.Float64:
		return &jsonschema.Schema{Type: "number"}
	}
	return &jsonschema.Schema{Type: "integer", Minimum: bound(l.min, l.hasMin), Maximum: bound(l.max, l.hasMax)}
}

// table returns the schema of an object with arbitrary keys.
func (m *schemaMaker) table(t reflect.Type, l limits) *jsonschema.Schema {
	inner := l.ofElement()
	inner.form = ""
	s := &jsonschema.Schema{Type: "object", AdditionalProperties: m.value(t.Elem(), inner), MaxProperties: count(l.max, l.hasMax)}
	if p := l.pattern(); p != "" {
		s.PropertyNames = &jsonschema.Schema{Pattern: p}
	}
	return s
}

// words returns the schema of a worded type. The comments of its values become the description.
func (m *schemaMaker) words(w worded) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for _, word := range w.words() {
		s.Enum = append(s.Enum, word)
	}
	var lines []string
	for _, v := range m.docs[reflect.TypeOf(w).Name()].Values {
		if v.Doc != "" && slices.Contains(w.words(), v.Value) {
			lines = append(lines, v.Value+": "+v.Doc)
		}
	}
	s.Description = strings.Join(lines, ". ")
	return s
}

// reference returns a reference to the definition of a struct. A hook may also be just its slot.
func (m *schemaMaker) reference(t reflect.Type) *jsonschema.Schema {
	if _, done := m.defs[t.Name()]; !done {
		m.defs[t.Name()] = nil
		m.defs[t.Name()] = m.record(t)
	}
	ref := &jsonschema.Schema{Ref: "#/$defs/" + t.Name()}
	if t == reflect.TypeFor[Hook]() {
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{m.words(Slot("")), ref}}
	}
	return ref
}

// pattern returns the expression for a string's form; empty: any string.
func (l limits) pattern() string {
	if f, ok := forms[l.form]; ok {
		return f.fits().String()
	}
	return ""
}

// count returns a limit as an optional schema keyword.
func count(n int64, there bool) *int {
	if !there {
		return nil
	}
	return new(int(n))
}

// bound returns a numeric limit as an optional schema keyword.
func bound(n int64, there bool) *float64 {
	if !there {
		return nil
	}
	return new(float64(n))
}
