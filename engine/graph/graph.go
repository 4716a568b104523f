// Package graph is the behaviour of history: which nodes make up the path to a leaf, what a model and a person see of
// it, and whether a turn may start from it. All of it is pure; nodes are never changed.
package graph

import (
	"errors"
	"fmt"
	"slices"

	"lashd/rpc/protocol"
)

// ErrMalformed means that nodes do not form a history.
var ErrMalformed = errors.New("malformed history")

// Path follows the parents of a leaf to the root and returns the nodes in the order in which they happened. It takes at
// most as many steps as there are nodes. A missing parent, a cycle, a root that opens no frame, or a generation that
// disagrees with the parents is ErrMalformed.
func Path(nodes map[protocol.NodeID]protocol.Node, leaf protocol.NodeID) ([]protocol.Node, error) {
	var path []protocol.Node
	for id := leaf; id != ""; {
		n, ok := nodes[id]
		if !ok {
			return nil, fmt.Errorf("node %s is missing: %w", id, ErrMalformed)
		}
		if len(path) == len(nodes) {
			return nil, fmt.Errorf("a cycle through node %s: %w", id, ErrMalformed)
		}
		path = append(path, n)
		id = n.Parent
	}
	if len(path) == 0 || path[len(path)-1].FrameOpen == nil {
		return nil, fmt.Errorf("the root opens no frame: %w", ErrMalformed)
	}
	slices.Reverse(path)
	for i, n := range path {
		if n.Generation != int64(i) {
			return nil, fmt.Errorf("node %s has generation %d, its parents say %d: %w", n.ID, n.Generation, i, ErrMalformed)
		}
	}
	return path, nil
}

// Frame is a labelled interval of a path.
type Frame struct {
	ID     protocol.FrameID
	Open   protocol.FrameOpen
	First  int // index of its first node after the one that opens it
	Length int
}

// Frames are the frames of a path, in order.
func Frames(path []protocol.Node) []Frame {
	var frames []Frame
	for i, n := range path {
		if n.FrameOpen != nil {
			frames = append(frames, Frame{ID: protocol.FrameID(n.ID), Open: *n.FrameOpen, First: i + 1})
			continue
		}
		if len(frames) > 0 {
			frames[len(frames)-1].Length++
		}
	}
	return frames
}

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
