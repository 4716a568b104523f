package graph

import (
	"slices"

	"lashd/rpc/protocol"
)

// Decide stores the decision over a tool call in the newest node that has the call; nothing if none has it. The node gets a copy of
// its message, because others may share the message.
func Decide(nodes []protocol.Node, id protocol.CallID, d *protocol.CallDecision) {
	for i := range slices.Backward(nodes) {
		at := -1
		if m := nodes[i].Message; m != nil {
			at = slices.IndexFunc(m.Parts, func(p protocol.Part) bool { return p.Call != nil && p.Call.CallID == id })
		}
		if at >= 0 {
			own := copyOf(nodes[i].Message)
			own.Parts[at].Decision, nodes[i].Message = d, own
			return
		}
	}
}

// HasResult reports whether one of the nodes has the result of a call.
func HasResult(nodes []protocol.Node, id protocol.CallID) bool {
	return slices.ContainsFunc(nodes, func(n protocol.Node) bool {
		return n.Message != nil && slices.ContainsFunc(n.Message.Parts, func(p protocol.Part) bool { return p.Result != nil && p.Result.CallID == id })
	})
}

// Undecided returns the message without decisions, which only lashd sets. It is the same message if it has none.
func Undecided(m *protocol.Message) *protocol.Message {
	if !slices.ContainsFunc(m.Parts, func(p protocol.Part) bool { return p.Decision != nil }) {
		return m
	}
	own := copyOf(m)
	for i := range own.Parts {
		own.Parts[i].Decision = nil
	}
	return own
}

// copyOf returns a copy of a message with parts of its own.
func copyOf(m *protocol.Message) *protocol.Message {
	own := *m
	own.Parts = slices.Clone(m.Parts)
	return &own
}
