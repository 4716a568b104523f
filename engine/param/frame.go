package param

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"

	"lashd/engine/graph"
	"lashd/rpc/protocol"
)

// CheckFrame checks that a conversation can continue from these nodes: each tool call has its
// result, and the messages are valid. Messages may keep an origin that a message of the past
// history has.
func CheckFrame(nodes []protocol.NodeBody, past []protocol.Message) error {
	var msgs []*protocol.Message
	plain := slices.Clone(nodes)
	for i, n := range nodes {
		if n.Message != nil {
			msgs = append(msgs, n.Message)
			plain[i].Message = withoutCalls(n.Message)
			if slices.ContainsFunc(past, func(m protocol.Message) bool { return m.Origin != nil && reflect.DeepEqual(m.Origin, n.Message.Origin) }) {
				plain[i].Message.Origin = nil
			}
		}
	}
	return cmp.Or(CheckAppend(plain), graph.ResumeSafe(msgs))
}

// withoutCalls returns a copy of the message with an empty text part in place of each tool call,
// tool result, code cell and code output. CheckFrame uses it because CheckAppend refuses such
// parts.
func withoutCalls(m *protocol.Message) *protocol.Message {
	short := *m
	short.Parts = slices.Clone(m.Parts)
	for i := range short.Parts {
		p := &short.Parts[i]
		switch p.Kind {
		case protocol.PartToolCall, protocol.PartToolResult, protocol.PartCode, protocol.PartOutput:
			if _, err := json.Marshal(p); err == nil && p.Attachment == nil && (p.Call == nil || p.Result == nil) {
				*p = protocol.Part{Kind: protocol.PartText}
			}
		}
	}
	return &short
}
