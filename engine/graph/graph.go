// Package graph is the behaviour of history: which nodes make up the path to a leaf, what a model and a person see of
// it, and whether a turn may start from it. All of it is pure; nodes are never changed.
package graph

import (
	"errors"
	"fmt"

	"lashd/rpc/protocol"
)

// ErrMalformed means that nodes do not form a history.
var ErrMalformed = errors.New("malformed history")

// Path follows the parents of a leaf to the root and returns the nodes in the order in which they happened. It ends at
// a node without a parent; a missing parent, a cycle or a root that opens no frame is ErrMalformed.
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
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
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

// ResumeSafe tells whether a turn may start from messages: each tool call has exactly one result, later in order.
func ResumeSafe(msgs []*protocol.Message) error {
	open := map[protocol.CallID]bool{}
	for _, m := range msgs {
		for _, p := range m.Parts {
			switch {
			case p.Kind == protocol.PartToolCall && p.Call != nil:
				if open[p.Call.CallID] {
					return fmt.Errorf("call %s is made twice: %w", p.Call.CallID, ErrUnpaired)
				}
				open[p.Call.CallID] = true
			case p.Kind == protocol.PartToolResult && p.Result != nil:
				if !open[p.Result.CallID] {
					return fmt.Errorf("result of %s without its call: %w", p.Result.CallID, ErrUnpaired)
				}
				delete(open, p.Result.CallID)
			}
		}
	}
	for id := range open {
		return fmt.Errorf("call %s has no result: %w", id, ErrUnpaired)
	}
	return nil
}
