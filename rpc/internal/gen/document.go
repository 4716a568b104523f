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

// wireText is what the tables do not say.
//
//go:embed wire.md
var wireText string

// document is the protocol for people.
func document(docs map[string]protocol.TypeDoc) string {
	var b strings.Builder
	b.WriteString(wireText)
	writeMethods(&b)
	writeNotifications(&b)
	writeEvents(&b, docs["EventType"])
	for _, vocabulary := range []struct{ title, name string }{
		{"Item kinds", "ItemKind"}, {"How a turn ends", "OutcomeKind"}, {"Why the model stopped", "StopReason"}, {"What a decision offers", "DecisionChoice"},
	} {
		writeWords(&b, vocabulary.title, docs[vocabulary.name])
	}
	writeErrors(&b, docs["ErrorKind"])
	writeErrorData(&b, docs["ErrorData"])
	return b.String()
}

func writeMethods(b *strings.Builder) {
	b.WriteString("\n## Methods\n\nA question mark marks what may be left out.\n")
	table := rpc.Methods()
	for _, group := range rpc.Groups() {
		fmt.Fprintf(b, "\n### %s\n\n| method | params | result | |\n|---|---|---|---|\n", group)
		for _, name := range slices.Sorted(maps.Keys(table)) {
			if m := table[name]; m.Group == group {
				fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name, fields(m.Params), fields(m.Result), m.Doc)
			}
		}
	}
}

func writeNotifications(b *strings.Builder) {
	b.WriteString("\n## Notifications\n\n| to a client | params | |\n|---|---|---|\n")
	for _, n := range rpc.Notifications {
		params := fields(n.Params)
		if n.Params == reflect.TypeFor[protocol.Event]() {
			params = "`sessionId` `seq?` `atMs` `turnId?` `type` and what the type carries"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", n.Method, params, n.Doc)
	}
}

func writeEvents(b *strings.Builder, doc protocol.TypeDoc) {
	b.WriteString("\n## Events of a session\n\n| type | durable | |\n|---|---|---|\n")
	for _, v := range doc.Values {
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", v.Value, durability(protocol.EventType(v.Value)), v.Doc)
	}
}

func durability(t protocol.EventType) string {
	switch {
	case t == protocol.EventItemStarted:
		return "of tool calls"
	case t == protocol.EventItemRetracted:
		return "of a turn that could not be finished"
	case t.Durable():
		return "yes"
	}
	return "no"
}

func writeWords(b *strings.Builder, title string, doc protocol.TypeDoc) {
	fmt.Fprintf(b, "\n## %s\n\n| word | |\n|---|---|\n", title)
	for _, v := range doc.Values {
		fmt.Fprintf(b, "| `%s` | %s |\n", v.Value, v.Doc)
	}
}

func writeErrors(b *strings.Builder, doc protocol.TypeDoc) {
	b.WriteString("\n## Errors\n\n| kind | code | |\n|---|---|---|\n")
	for _, v := range doc.Values {
		fmt.Fprintf(b, "| `%s` | %d | %s |\n", v.Value, rpc.ErrorCode(protocol.ErrorKind(v.Value)), v.Doc)
	}
}

// writeErrorData lists what an error carries beside its code and its message.
func writeErrorData(b *strings.Builder, doc protocol.TypeDoc) {
	b.WriteString("\n## What `data` of an error holds\n\n| member | |\n|---|---|\n")
	members(reflect.TypeFor[protocol.ErrorData](), func(name string, _ bool, _ reflect.Type) {
		fmt.Fprintf(b, "| `%s` | %s |\n", name, doc.Fields[name])
	})
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
	for f := range t.Fields() {
		if f.Anonymous {
			members(f.Type, visit)
			continue
		}
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		ft := f.Type
		if strings.Contains(rest, "string") { // a number that other languages cannot hold is text on the wire
			ft = reflect.TypeFor[string]()
		}
		visit(name, strings.Contains(rest, "omit"), ft)
	}
}
