// Package graph interprets history: what the model sees of a path of nodes, what people see of it, and whether a turn may start
// from it. All functions are pure and never modify nodes.
package graph

import (
	"errors"
	"fmt"
	"slices"

	"lashd/rpc/protocol"
)

// Messages returns what the model sees of a path: the messages of its last frame. Compaction and frame switches open a
// new frame; older frames stay readable for clients. The messages are shared with the nodes.
// Without a message the result is nil. The path is in order from the oldest to the newest node.
func Messages(path []protocol.Node) []*protocol.Message {
	first := 0
	for i := range path {
		if path[i].FrameOpen != nil {
			first = i + 1
		}
	}
	var msgs []*protocol.Message
	for _, n := range path[first:] {
		if n.Message != nil {
			msgs = append(msgs, n.Message)
		}
	}
	return msgs
}

// ErrUnpaired means that a tool call does not have exactly one result. Providers reject such a conversation, so lashd
// must not start a turn from it. ResumeSafe wraps it with the id of the call.
var ErrUnpaired = errors.New("a tool call does not have exactly one result after it")

// ResumeSafe returns an error unless a turn may start from the messages: each tool call must be followed by exactly one
// result. A call id may be reused after its result, because some providers number the calls of each reply from the
// start. The error names the first call or result at fault and wraps ErrUnpaired.
func ResumeSafe(msgs []*protocol.Message) error {
	var made []protocol.CallID
	open := map[protocol.CallID]bool{}
	for _, m := range msgs {
		for i := range m.Parts {
			p := &m.Parts[i]
			switch p.Kind {
			case protocol.PartToolCall:
				if p.Call == nil {
					return fmt.Errorf("a call without content: %w", ErrUnpaired)
				}
				if open[p.Call.CallID] {
					return fmt.Errorf("call %s is made twice: %w", p.Call.CallID, ErrUnpaired)
				}
				open[p.Call.CallID], made = true, append(made, p.Call.CallID)
			case protocol.PartToolResult:
				if p.Result == nil {
					return fmt.Errorf("a result without content: %w", ErrUnpaired)
				}
				if !open[p.Result.CallID] {
					return fmt.Errorf("result of %s without its call: %w", p.Result.CallID, ErrUnpaired)
				}
				delete(open, p.Result.CallID)
			}
		}
	}
	if i := slices.IndexFunc(made, func(id protocol.CallID) bool { return open[id] }); i >= 0 {
		return fmt.Errorf("call %s has no result: %w", made[i], ErrUnpaired)
	}
	return nil
}
