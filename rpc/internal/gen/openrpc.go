package main

import (
	"maps"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"lashd/rpc"
	"lashd/rpc/protocol"
)

// schemaPath is the path of types in an OpenRPC document.
const schemaPath = "#/components/schemas/"

// openRPC is an OpenRPC document: https://spec.open-rpc.org.
type openRPC struct {
	OpenRPC    string            `json:"openrpc"`
	Info       map[string]string `json:"info"`
	Methods    []openRPCMethod   `json:"methods"`
	Components struct {
		Schemas map[string]*jsonschema.Schema `json:"schemas"`
	} `json:"components"`
}

// openRPCMethod is a method in an OpenRPC document. Params are passed by name.
type openRPCMethod struct {
	Name    string           `json:"name"`
	Summary string           `json:"summary"`
	By      string           `json:"paramStructure"`
	Params  []openRPCContent `json:"params"`
	Result  openRPCContent   `json:"result"`
}

// openRPCContent is a content descriptor: a named parameter or a result.
type openRPCContent struct {
	Name     string             `json:"name"`
	Required bool               `json:"required,omitempty"`
	Schema   *jsonschema.Schema `json:"schema"`
}

// openRPCDocument returns openrpc.json, with the methods in alphabetical order.
func openRPCDocument(docs map[string]protocol.TypeDoc) []byte {
	doc := openRPC{OpenRPC: "1.3.2", Info: map[string]string{"title": "lashd", "version": "1"}}
	doc.Components.Schemas = schemas(wireTypes(), docs, schemaPath)
	table := rpc.Methods()
	for _, name := range slices.Sorted(maps.Keys(table)) {
		m := table[name]
		doc.Methods = append(doc.Methods, openRPCMethod{
			Name: name, Summary: m.Doc, By: "by-name", Params: doc.params(m.Params), Result: openRPCContent{"result", false, reference(schemaPath, m.Result)},
		})
	}
	return indent(doc)
}

// params describes each member of a params type as a parameter of its own, as OpenRPC requires. The
// schemas of the types must be complete.
func (d *openRPC) params(t reflect.Type) []openRPCContent {
	list := []openRPCContent{}
	s := d.Components.Schemas[t.Name()]
	members(t, func(name string, optional bool, _ reflect.Type) {
		list = append(list, openRPCContent{name, !optional, s.Properties[name]})
	})
	return list
}
