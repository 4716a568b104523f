package rpc

import (
	"encoding/json"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
)

// OpenRPC is the OpenRPC document of the protocol, made from the method table.
func OpenRPC() []byte {
	type content struct {
		Name   string             `json:"name"`
		Schema *jsonschema.Schema `json:"schema"`
	}
	type method struct {
		Name    string    `json:"name"`
		Summary string    `json:"summary"`
		Params  []content `json:"params"`
		Result  content   `json:"result"`
	}
	table := Methods()
	var methods []method
	for _, name := range names(table) {
		m := table[name]
		methods = append(methods, method{
			Name: name, Summary: m.Doc, Params: []content{{"params", schemaOf(m.Params)}}, Result: content{"result", schemaOf(m.Result)},
		})
	}
	doc, err := json.MarshalIndent(struct {
		OpenRPC string            `json:"openrpc"`
		Info    map[string]string `json:"info"`
		Methods []method          `json:"methods"`
	}{"1.3.2", map[string]string{"title": "lashd", "version": "1"}, methods}, "", "  ")
	if err != nil {
		panic("encode the OpenRPC document: " + err.Error())
	}
	return doc
}

func schemaOf(t reflect.Type) *jsonschema.Schema {
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{})
	if err != nil {
		panic("schema of " + t.String() + ": " + err.Error())
	}
	return s
}
