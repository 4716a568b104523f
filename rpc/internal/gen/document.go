package main

import (
	_ "embed"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"lashd/rpc"
	"lashd/rpc/protocol"
)

// wireText is the hand-written part of the document, before the tables.
//
//go:embed wire.md
var wireText string

// document returns docs/protocol.md: the text of wire.md, followed by tables of methods,
// notifications, events, enumerated strings and errors.
func document(docs map[string]protocol.TypeDoc) string {
	var b strings.Builder
	b.WriteString(wireText)
	writeMethods(&b)
	writeNotifications(&b)
	writeEvents(&b, docs["EventType"])
	for _, vocabulary := range []struct{ title, name string }{
		{"Item kinds", "ItemKind"}, {"Turn outcomes", "OutcomeKind"}, {"Stop reasons", "StopReason"}, {"Decision choices", "DecisionChoice"},
	} {
		writeWords(&b, vocabulary.title, docs[vocabulary.name])
	}
	writeErrors(&b, docs["ErrorKind"])
	writeErrorData(&b, docs["ErrorData"])
	return b.String()
}

// writeMethods writes one table of methods per group.
func writeMethods(b *strings.Builder) {
	b.WriteString("\n## Methods\n\nA question mark marks an optional member.\n")
	table := rpc.Methods()
	for _, group := range rpc.Groups() {
		fmt.Fprintf(b, "\n### %s\n\n| method | params | result | description |\n|---|---|---|---|\n", group)
		for _, name := range slices.Sorted(maps.Keys(table)) {
			if m := table[name]; m.Group == group {
				fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name, fields(m.Params), fields(m.Result), m.Doc)
			}
		}
	}
}

// writeNotifications writes the table of notifications. The members of session/event depend on its
// type.
func writeNotifications(b *strings.Builder) {
	b.WriteString("\n## Notifications\n\n| notification | params | description |\n|---|---|---|\n")
	for _, n := range rpc.Notifications {
		params := fields(n.Params)
		if n.Params == reflect.TypeFor[protocol.Event]() {
			params = "`sessionId` `seq?` `atMs` `turnId?` `type` and the members that its type lists below"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", n.Method, params, n.Doc)
	}
}

// writeEvents writes the table of event types.
func writeEvents(b *strings.Builder, doc protocol.TypeDoc) {
	b.WriteString("\n## Session events\n\n| type | durable | description: members |\n|---|---|---|\n")
	for _, v := range doc.Values {
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", v.Value, durability(protocol.EventType(v.Value)), v.Doc)
	}
}

// durability says in words whether events of a type are stored.
func durability(t protocol.EventType) string {
	switch {
	case t == protocol.EventItemStarted:
		return "for tool calls and code cells"
	case t == protocol.EventItemRetracted:
		return "for turns that lashd could not complete"
	case t.Durable():
		return "yes"
	}
	return "no"
}

// writeWords writes the table of an enumerated string type.
func writeWords(b *strings.Builder, title string, doc protocol.TypeDoc) {
	fmt.Fprintf(b, "\n## %s\n\n| value | meaning |\n|---|---|\n", title)
	for _, v := range doc.Values {
		fmt.Fprintf(b, "| `%s` | %s |\n", v.Value, v.Doc)
	}
}

// writeErrors writes the table of error kinds with their codes.
func writeErrors(b *strings.Builder, doc protocol.TypeDoc) {
	b.WriteString("\n## Errors\n\n| kind | code | meaning |\n|---|---|---|\n")
	for _, v := range doc.Values {
		fmt.Fprintf(b, "| `%s` | %d | %s |\n", v.Value, rpc.ErrorCode(protocol.ErrorKind(v.Value)), v.Doc)
	}
}

// writeErrorData lists the members of an error's data.
func writeErrorData(b *strings.Builder, doc protocol.TypeDoc) {
	b.WriteString("\n## Error data\n\n| member | meaning |\n|---|---|\n")
	members(reflect.TypeFor[protocol.ErrorData](), func(name string, _ bool, _ reflect.Type) {
		fmt.Fprintf(b, "| `%s` | %s |\n", name, doc.Fields[name])
	})
}

// fields lists the members of a params or result type for a table. Optional ones end with a
// question mark.
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

// members visits the JSON members of a struct in order, including those of embedded structs.
// optional says that the member may be absent. All generators use it, so they agree on the wire
// format.
func members(t reflect.Type, visit func(name string, optional bool, t reflect.Type)) {
	for f := range t.Fields() {
		if f.Anonymous {
			members(f.Type, visit)
			continue
		}
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		ft := f.Type
		if strings.Contains(rest, "string") { // a number too large for JavaScript is a string on the wire
			ft = reflect.TypeFor[string]()
		}
		visit(name, strings.Contains(rest, "omit"), ft)
	}
}
