package graph_test

import (
	"fmt"
	"testing"

	"lashd/engine/graph"
	"lashd/rpc/protocol"
)

func TestRepeated(t *testing.T) {
	said := func(text string) protocol.Message {
		return protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: text}}}
	}
	body := func(text string) protocol.NodeBody {
		m := said(text)
		return protocol.NodeBody{Message: &m}
	}
	history := []protocol.Message{said("a"), said("b"), said("a"), said("c")}
	for _, c := range []struct{ texts, want string }{
		{"sac", "[false true true]"},
		{"baac", "[true true false true]"}, // a second answer that nobody gave
		{"cb", "[true false]"},             // another order
		{"ababac", "[true true true false false true]"},
	} {
		var nodes []protocol.NodeBody
		for _, r := range c.texts {
			nodes = append(nodes, body(string(r)))
		}
		if got := fmt.Sprint(graph.Repeated(append([]protocol.NodeBody{{}}, nodes...), history)[1:]); got != c.want {
			t.Errorf("part13 %s repeats %s of abac, want %s", c.texts, got, c.want)
		}
	}
}
