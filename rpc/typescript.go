package rpc

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"lashd/rpc/protocol"
)

// typescript is the protocol for clients in TypeScript: an interface for each type, and the types of each method.
func typescript() string {
	w := &tsWriter{seen: map[reflect.Type]bool{}, types: map[string]string{}}
	table := Methods()
	var methods strings.Builder
	for _, name := range names(table) {
		m := table[name]
		fmt.Fprintf(&methods, "  /** %s */\n  %q: { params: %s; result: %s };\n", m.Doc, name, w.name(m.Params), w.name(m.Result))
	}
	w.name(reflect.TypeFor[protocol.Event]())
	w.name(reflect.TypeFor[protocol.Gap]())
	w.name(reflect.TypeFor[protocol.ErrorData]())
	var b strings.Builder
	b.WriteString("// Generated from the method table of lashd; do not edit.\n\n")
	for _, name := range slices.Sorted(maps.Keys(w.types)) {
		b.WriteString(w.types[name] + "\n")
	}
	return b.String() + "export interface Methods {\n" + methods.String() + "}\n"
}

type tsWriter struct {
	seen  map[reflect.Type]bool
	types map[string]string
}

// name is what a Go type is called in TypeScript; structs are declared on the way.
func (w *tsWriter) name(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return "unknown"
	case t.Kind() == reflect.Pointer:
		return w.name(t.Elem())
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "string"
	case t.Kind() == reflect.Slice:
		return w.name(t.Elem()) + "[]"
	case t.Kind() == reflect.Map:
		return "Record<string, " + w.name(t.Elem()) + ">"
	case t.Kind() == reflect.Struct:
		w.declare(t)
		return t.Name()
	case t.Kind() == reflect.String:
		return "string"
	case t.Kind() == reflect.Bool:
		return "boolean"
	}
	return "number"
}

func (w *tsWriter) declare(t reflect.Type) {
	if w.seen[t] {
		return
	}
	w.seen[t] = true
	var b strings.Builder
	fmt.Fprintf(&b, "export interface %s {\n", t.Name())
	members(t, func(name string, optional bool, ft reflect.Type) {
		mark := ""
		if optional {
			mark = "?"
		}
		fmt.Fprintf(&b, "  %s%s: %s;\n", name, mark, w.name(ft))
	})
	w.types[t.Name()] = b.String() + "}\n"
}
