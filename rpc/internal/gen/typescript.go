package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"lashd/rpc"
	"lashd/rpc/protocol"
)

// typescript returns protocol.ts for the VS Code extension: a TypeScript type for each wire type,
// and the interfaces Methods and Notifications.
func typescript(docs map[string]protocol.TypeDoc) string {
	var b strings.Builder
	b.WriteString("// Generated from the method table of lashd; do not edit.\n\n")
	types := wireTypes()
	for _, name := range slices.Sorted(maps.Keys(types)) {
		writeType(&b, name, types[name], docs[name])
	}
	b.WriteString("/** The params and the result of every method. */\nexport interface Methods {\n")
	table := rpc.Methods()
	for _, name := range slices.Sorted(maps.Keys(table)) {
		fmt.Fprintf(&b, "  /** %s */\n  %q: { params: %s; result: %s };\n", table[name].Doc, name, tsName(table[name].Params), tsName(table[name].Result))
	}
	b.WriteString("}\n\n/** The params of every notification to a client. */\nexport interface Notifications {\n")
	for _, n := range rpc.Notifications {
		fmt.Fprintf(&b, "  /** %s */\n  %q: %s;\n", n.Doc, n.Method, tsName(n.Params))
	}
	return b.String() + "}\n"
}

// writeType writes a wire type as an interface or, if it is no struct, as an alias.
func writeType(b *strings.Builder, name string, t reflect.Type, doc protocol.TypeDoc) {
	if doc.Doc != "" {
		fmt.Fprintf(b, "/** %s */\n", doc.Doc)
	}
	switch {
	case t.Kind() != reflect.Struct:
		fmt.Fprintf(b, "export type %s = %s;\n\n", name, tsAlias(t, doc))
		return
	case t.NumField() == 0:
		fmt.Fprintf(b, "export type %s = Record<string, never>;\n\n", name)
		return
	}
	fmt.Fprintf(b, "export interface %s {\n", name)
	members(t, func(field string, optional bool, ft reflect.Type) {
		if text := doc.Fields[field]; text != "" {
			fmt.Fprintf(b, "  /** %s */\n", text)
		}
		mark := ""
		if optional {
			mark = "?"
		}
		fmt.Fprintf(b, "  %s%s: %s;\n", field, mark, tsName(ft))
	})
	b.WriteString("}\n\n")
}

// tsAlias returns the right side of a type alias: a union of the enumerated strings, or a plain
// type for a string type without constants.
func tsAlias(t reflect.Type, doc protocol.TypeDoc) string {
	if len(doc.Values) == 0 {
		return tsPlain(t)
	}
	var words []string
	for _, v := range doc.Values {
		words = append(words, fmt.Sprintf("%q", v.Value))
	}
	return strings.Join(words, " | ")
}

// tsName returns the TypeScript name of a Go type: its own name if it is a wire type.
func tsName(t reflect.Type) string {
	if t.PkgPath() == reflect.TypeFor[protocol.Event]().PkgPath() {
		return t.Name()
	}
	return tsPlain(t)
}

// tsPlain returns the TypeScript form of a type that has no name in package protocol.
func tsPlain(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return "unknown"
	case t.Kind() == reflect.Pointer:
		return tsName(t.Elem())
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8, t.Kind() == reflect.String:
		return "string"
	case t.Kind() == reflect.Slice:
		return tsName(t.Elem()) + "[]"
	case t.Kind() == reflect.Map:
		return "Record<string, " + tsName(t.Elem()) + ">"
	case t.Kind() == reflect.Bool:
		return "boolean"
	}
	return "number"
}
