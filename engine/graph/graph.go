// Package graph is the behaviour of history: what a model sees of a path of nodes, and whether a turn may start from it. All of
// it is pure; nodes are never changed.
package graph

import (
	"errors"
	"fmt"
	"slices"

	"lashd/rpc/protocol"
)

// Messages is what a model sees of a path: the messages of its last frame. Older frames stay readable, but compaction
// and frame switches take them out of the model's sight.
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

// ErrUnpaired means that a tool call lacks its one result.
var ErrUnpaired = errors.New("a tool call does not have exactly one result after it")

// ResumeSafe tells whether a turn may start from messages: each tool call has exactly one result, later in order. An
// id may be used again once its call has its result: some providers number the calls of each reply anew.
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
