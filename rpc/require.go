package rpc

import (
	"encoding/json"
	"reflect"
	"strings"

	"lashd/engine"
	"lashd/rpc/internal/strictjson"
)

// require checks that every field without omitempty or omitzero is there: its absence would silently be a zero.
func require(raw json.RawMessage, params any) error {
	present := map[string]bool{}
	for name := range strictjson.Members(raw) {
		present[name] = true
	}
	for _, name := range requiredFields(reflect.TypeOf(params).Elem()) {
		if !present[name] {
			return &engine.ParamError{Pointer: "/" + name, Reason: "is required"}
		}
	}
	return nil
}

func requiredFields(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			names = append(names, requiredFields(f.Type)...)
			continue
		}
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !strings.Contains(rest, "omit") {
			names = append(names, name)
		}
	}
	return names
}
