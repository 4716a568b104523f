package main

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"lashd/rpc"
	"lashd/rpc/protocol"
)

// wireTypes returns every named type of package protocol that a method, a notification or an error
// uses. A type that none of them uses is not part of the protocol and gets no schema.
func wireTypes() map[string]reflect.Type {
	found := map[string]reflect.Type{}
	for _, m := range rpc.Methods() {
		collect(found, m.Params)
		collect(found, m.Result)
	}
	for _, n := range rpc.Notifications {
		collect(found, n.Params)
	}
	collect(found, reflect.TypeFor[protocol.ErrorData]())
	return found
}

// collect adds t to found if it is a named type of package protocol, and all types that it refers
// to.
func collect(found map[string]reflect.Type, t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if t.PkgPath() == "" {
			collect(found, t.Elem())
			return
		}
	}
	if t.PkgPath() != reflect.TypeFor[protocol.Event]().PkgPath() || found[t.Name()] != nil {
		return
	}
	found[t.Name()] = t
	switch t.Kind() {
	case reflect.Struct:
		members(t, func(_ string, _ bool, ft reflect.Type) { collect(found, ft) })
	case reflect.Slice, reflect.Map:
		collect(found, t.Elem())
	}
}

// schemas returns a JSON Schema for each type. Other named types are references that begin with
// prefix, such as #/$defs/.
func schemas(types map[string]reflect.Type, docs map[string]protocol.TypeDoc, prefix string) map[string]*jsonschema.Schema {
	refs := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {}, // any JSON
		reflect.TypeFor[[]byte]():          {Type: "string", ContentEncoding: "base64"},
	}
	for name, t := range types {
		refs[t] = &jsonschema.Schema{Ref: prefix + name}
	}
	defs := map[string]*jsonschema.Schema{}
	for name, t := range types {
		s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: withoutOwn(refs, t)})
		if err != nil {
			panic("schema of " + t.String() + ": " + err.Error())
		}
		asText(s, t)
		orNull(s, t)
		explain(s, docs[name], strings.HasSuffix(name, "Params"))
		defs[name] = s
	}
	return defs
}

// asText declares a number as a string where its tag has ",string". Such numbers may exceed what
// JavaScript represents exactly.
func asText(s *jsonschema.Schema, t reflect.Type) {
	if t.Kind() != reflect.Struct {
		return
	}
	members(t, func(name string, _ bool, ft reflect.Type) {
		if p := s.Properties[name]; ft.Kind() == reflect.String && p != nil && p.Type == "integer" {
			s.Properties[name] = &jsonschema.Schema{Type: "string", Pattern: "^[0-9]+$"}
		}
	})
}

// orNull corrects optional and nullable references. In JSON Schema, a type next to $ref is a further condition, not an alternative.
func orNull(s *jsonschema.Schema, t reflect.Type) {
	if t.Kind() != reflect.Struct {
		return
	}
	members(t, func(name string, optional bool, _ reflect.Type) {
		switch p := s.Properties[name]; {
		case p == nil || p.Ref == "" || p.Types == nil:
		case optional:
			s.Properties[name] = &jsonschema.Schema{Ref: p.Ref}
		default:
			s.Properties[name] = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Ref: p.Ref}, {Type: "null"}}}
		}
	})
}

// withoutOwn returns refs without t and its embedded types, so that their members are written out.
// The schema of t would otherwise be a reference to itself.
func withoutOwn(refs map[reflect.Type]*jsonschema.Schema, t reflect.Type) map[reflect.Type]*jsonschema.Schema {
	others := maps.Clone(refs)
	delete(others, t)
	if t.Kind() == reflect.Struct {
		for f := range t.Fields() {
			if f.Anonymous {
				delete(others, f.Type)
			}
		}
	}
	return others
}

// explain adds the comments of the source to a schema. Params accept no unknown members except
// names that begin with _. Other types accept any, so that clients accept results of a newer
// daemon.
func explain(s *jsonschema.Schema, doc protocol.TypeDoc, params bool) {
	s.Description = doc.Doc
	for _, v := range doc.Values {
		s.Enum = append(s.Enum, v.Value)
	}
	for name, text := range doc.Fields {
		if p := s.Properties[name]; p != nil {
			p.Description = text
		}
	}
	switch {
	case s.Properties == nil:
	case params:
		s.PatternProperties = map[string]*jsonschema.Schema{"^_": {}}
	default:
		s.AdditionalProperties = nil
	}
}

// jsonSchema returns schema.json: the schema of every wire type, under $defs. Clients in other
// languages generate their types from it.
func jsonSchema(docs map[string]protocol.TypeDoc) []byte {
	return indent(&jsonschema.Schema{
		Schema: "https://json-schema.org/draft/2020-12/schema", Title: "The client protocol of lashd",
		Defs: schemas(wireTypes(), docs, "#/$defs/"),
	})
}

// reference refers to a wire type, or to any JSON for a raw message.
func reference(prefix string, t reflect.Type) *jsonschema.Schema {
	if t == reflect.TypeFor[json.RawMessage]() {
		return &jsonschema.Schema{}
	}
	return &jsonschema.Schema{Ref: prefix + t.Name()}
}

// indent encodes a generated document.
func indent(v any) []byte {
	doc, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return append(doc, '\n')
}
