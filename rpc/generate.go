package rpc

import (
	"fmt"
	"reflect"
	"strings"
)

//go:generate sh -c "cd .. && go run ./rpc/internal/gen"

// Generated are the files that are made from the method table, by path from the root of the project.
func Generated() map[string][]byte {
	return map[string][]byte{
		"rpc/protocol/openrpc.json":      append(OpenRPC(), '\n'),
		"docs/protocol.md":               []byte(document()),
		"editors/vscode/src/protocol.ts": []byte(typescript()),
	}
}

// document is the protocol for people.
func document() string {
	var b strings.Builder
	b.WriteString("# The client protocol\n\nGenerated from the method table; do not edit. JSON-RPC 2.0 on stdio and on the unix socket, with " +
		"`Content-Length` headers or one JSON value a line. `lashd schema` prints the same with the schema of every type.\n")
	table := Methods()
	for _, group := range Groups() {
		fmt.Fprintf(&b, "\n## %s\n\n| method | params | result | |\n|---|---|---|---|\n", group)
		for _, name := range names(table) {
			if m := table[name]; m.Group == group {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, fields(m.Params), fields(m.Result), m.Doc)
			}
		}
	}
	return b.String()
}

// fields lists the members of a params or result type; optional ones have a question mark.
func fields(t reflect.Type) string {
	if t.Kind() != reflect.Struct {
		return "any"
	}
	var list []string
	members(t, func(name string, optional bool, _ reflect.Type) {
		if optional {
			name += "?"
		}
		list = append(list, "`"+name+"`")
	})
	return strings.Join(list, " ")
}

// members visits the JSON members of a struct, those of embedded structs in their place.
func members(t reflect.Type, visit func(name string, optional bool, t reflect.Type)) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			members(f.Type, visit)
			continue
		}
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		visit(name, strings.Contains(rest, "omit"), f.Type)
	}
}
