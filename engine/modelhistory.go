package engine

import (
	"slices"

	"lashd/engine/graph"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// history is what the model sees of the session's past, read once and then grown with each commit.
type history struct {
	leaf     protocol.NodeID
	messages []*protocol.Message
}

// past is what the model sees before the next turn.
func (st *state) past() ([]*protocol.Message, error) {
	if st.history != nil && st.history.leaf == st.row.Head.Leaf {
		return slices.Clip(st.history.messages), nil
	}
	msgs, err := st.pastAt(persistence.Cursor{Branch: st.branch, Generation: st.row.Head.Generation})
	if err != nil {
		return nil, err
	}
	st.history = &history{leaf: st.row.Head.Leaf, messages: msgs}
	return slices.Clip(msgs), nil
}

func (st *state) pastAt(leaf persistence.Cursor) ([]*protocol.Message, error) {
	nodes, err := st.frameNodes(leaf)
	if err != nil {
		return nil, err
	}
	msgs := graph.Messages(nodes)
	return msgs, graph.ResumeSafe(msgs)
}

// frameNodes reads the path from a leaf back to the node that opens its frame, in order.
func (st *state) frameNodes(at persistence.Cursor) ([]protocol.Node, error) {
	var nodes []protocol.Node
	for !at.Done {
		page, next, err := st.eng.store.Path(st.ctx, at, 500)
		if err != nil {
			return nil, err
		}
		at = next
		for _, n := range page {
			nodes = append(nodes, n)
			if n.FrameOpen != nil {
				at.Done = true
				break
			}
		}
	}
	return persistence.Reversed(nodes), nil
}

// grow keeps the history that the model sees in step with nodes that were just committed.
func (st *state) grow(before protocol.NodeID, nodes []protocol.Node) {
	h := st.history
	if h == nil || h.leaf != before {
		st.history = nil
		return
	}
	for i := range nodes {
		if nodes[i].FrameOpen != nil {
			st.history = nil
			return
		}
		if nodes[i].Message != nil {
			h.messages = append(h.messages, nodes[i].Message)
		}
		h.leaf = nodes[i].ID
	}
}
