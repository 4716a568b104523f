package main

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"lashd/rpc/protocol"
)

// filled sets every member of v, down to depth nested pointers.
func filled(v reflect.Value, docs map[string]protocol.TypeDoc, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		if depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			filled(v.Elem(), docs, depth-1)
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			filled(field, docs, depth-1)
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"any":["JSON"]}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		filled(v.Index(0), docs, depth-1)
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		filled(value, docs, depth-1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), value)
	case reflect.String:
		v.SetString("text")
		if values := docs[v.Type().Name()].Values; len(values) > 0 {
			v.SetString(values[0].Value)
		}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		v.Set(reflect.ValueOf(1).Convert(v.Type()))
	}
}

// published returns a schema for objects with one optional member per wire type.
func published(t *testing.T, docs map[string]protocol.TypeDoc) *jsonschema.Resolved {
	t.Helper()
	var schema jsonschema.Schema
	if err := json.Unmarshal(jsonSchema(docs), &schema); err != nil {
		t.Fatal(err)
	}
	schema.Properties = map[string]*jsonschema.Schema{}
	for name := range schema.Defs {
		schema.Properties[name] = &jsonschema.Schema{Ref: "#/$defs/" + name}
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

// TestSchemaOfTheWire checks that encoded values of every wire type are valid under the published schema.
func TestSchemaOfTheWire(t *testing.T) {
	docs, err := describe("../../protocol")
	if err != nil {
		t.Fatal(err)
	}
	schema := published(t, docs)
	for name, typ := range wireTypes() {
		t.Run("issue/2 "+name+" matches its schema", func(t *testing.T) {
			value := reflect.New(typ)
			filled(value.Elem(), docs, 8)
			sent, err := json.Marshal(map[string]any{name: value.Interface()})
			if err != nil {
				t.Fatal(err)
			}
			var got any
			if err := json.Unmarshal(sent, &got); err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(got); err != nil {
				t.Errorf("%s: %v", sent, err)
			}
		})
	}
}
