package engine

import (
	"context"
	"iter"
	"slices"

	"lashd/engine/graph"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// sessionHistory is the history of a session as the actor uses it. It owns the branch that new
// nodes are added to, a cache of the messages that the model sees, and the file rewinds that an
// earlier daemon left unfinished. It uses the state for the session's row, for changes and commits,
// and for holds. All methods run on the actor.
type sessionHistory struct {
	st         *state
	branch     int64                     // where new nodes go
	model      *modelHistory             // cached; nil: read it from the store
	unfinished []persistence.StoredPoint // rewinds to finish when the session starts
}

// modelHistory is the history that the model sees, up to a leaf.
type modelHistory struct {
	leaf     protocol.NodeID
	messages []*protocol.Message
}

// load sets the branch and reads the unfinished rewinds. It is called once, when the state is
// loaded.
func (h *sessionHistory) load(st *state, branch int64) (err error) {
	h.st, h.branch = st, branch
	h.unfinished, err = st.eng.store.Files.OpenRewinds(st.ctx, st.key)
	return err
}

// leaf returns the place of the newest node.
func (h *sessionHistory) leaf() persistence.Cursor {
	return persistence.Cursor{Branch: h.branch, Generation: h.st.row.Head.Generation}
}

// messages returns the history that the model sees before the next turn. It is read from the store
// once and extended by each commit. The slice is clipped: callers may append, but must not change
// the messages.
func (h *sessionHistory) messages() ([]*protocol.Message, error) {
	leaf := h.st.row.Head.Leaf
	if h.model == nil || h.model.leaf != leaf {
		messages, err := h.messagesAt(h.leaf())
		if err != nil {
			return nil, err
		}
		h.model = &modelHistory{leaf, messages}
	}
	return slices.Clip(h.model.messages), nil
}

// messagesAt returns the history that the model sees at a place of the branch, read from the store.
// It fails if a tool call lacks its result there.
func (h *sessionHistory) messagesAt(at persistence.Cursor) ([]*protocol.Message, error) {
	nodes, err := h.frameNodes(at)
	if err != nil {
		return nil, err
	}
	msgs := graph.Messages(nodes)
	return msgs, graph.ResumeSafe(msgs)
}

// frameNodes returns the nodes from the one that opens the frame up to the given place, in order.
// The model sees no older nodes.
func (h *sessionHistory) frameNodes(at persistence.Cursor) ([]protocol.Node, error) {
	var nodes []protocol.Node
	for n, err := range h.back(h.st.ctx, at, 500) {
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, *n)
		if n.FrameOpen != nil {
			break
		}
	}
	return persistence.Reversed(nodes), nil
}

// grow extends the cached history with nodes that were just committed after the node before. If the
// nodes open a frame or do not follow the cached leaf, it drops the cache. Every commit calls it,
// except one that moves the leaf elsewhere.
func (h *sessionHistory) grow(before protocol.NodeID, nodes []protocol.Node) {
	m := h.model
	if m == nil || m.leaf != before || slices.ContainsFunc(nodes, func(n protocol.Node) bool { return n.FrameOpen != nil }) {
		h.model = nil
		return
	}
	for i := range nodes {
		if nodes[i].Message != nil {
			m.messages = append(m.messages, nodes[i].Message)
		}
		m.leaf = nodes[i].ID
	}
}

// reload drops the cache and reads the branch again, after a commit that moved the leaf.
func (h *sessionHistory) reload(ctx context.Context) error {
	h.model = nil
	row, err := h.st.eng.store.Session(ctx, h.st.id)
	if err == nil {
		h.branch = row.Branch
	}
	return err
}

// back iterates over the nodes from a place back to the root, newest first. It reads pages of the
// given size; after an error it stops.
func (h *sessionHistory) back(ctx context.Context, from persistence.Cursor, page int) iter.Seq2[*protocol.Node, error] {
	return func(yield func(*protocol.Node, error) bool) {
		for !from.Done {
			var nodes []protocol.Node
			var err error
			if nodes, from, err = h.st.eng.store.Path(ctx, from, page); err != nil {
				yield(nil, err)
				return
			}
			for i := range nodes {
				if !yield(&nodes[i], nil) {
					return
				}
			}
		}
	}
}
