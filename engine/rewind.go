package engine

import (
	"context"
	"iter"

	"lashd/engine/change"
	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Rewind moves a session's leaf to an ancestor. What came after it stays, pinned, and can be forked from. It may bring back files,
// too, or only these.
func (h *History) Rewind(ctx context.Context, p *protocol.SessionRewindParams) (*protocol.SessionRewindResult, error) {
	if err := param.CheckRewind(p); err != nil {
		return nil, err
	}
	if p.Files != "" {
		return h.eng.rewindFiles(ctx, p)
	}
	return mutate(ctx, h.eng, p.SessionID, "session/rewind", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.SessionRewindResult, error) {
		if err := st.idle(); err != nil {
			return nil, err
		}
		to, result, err := st.leafFor(ctx, p)
		if err != nil || p.DryRun || result.Nodes == 0 {
			return result, err
		}
		c := st.change(persistence.Commit{})
		st.moveLeaf(ctx, c, to, result)
		result.Seq = c.Seq()
		c.Receipt = rc.With(result)
		if err := st.commit(ctx, c); err != nil {
			return nil, err
		}
		result.Head = st.row.Head
		return result, nil
	})
}

// target is a node that becomes the leaf.
type target struct {
	node *protocol.Node
	at   persistence.Cursor
}

// leafFor finds the node that a rewind goes to, and what it would come to.
func (st *state) leafFor(ctx context.Context, p *protocol.SessionRewindParams) (to target, result *protocol.SessionRewindResult, err error) {
	id := p.ToNode
	if id == "" {
		if id, err = st.beforeTurn(ctx, p.ToTurn); err != nil {
			return to, nil, err
		}
	}
	if to.at, err = st.eng.store.Locate(ctx, persistence.Session{Session: st.row, Branch: st.branch}, id); err != nil {
		return to, nil, err
	}
	if to.node, err = st.eng.node(ctx, id); err != nil {
		return to, nil, err
	}
	if err := restable(to.node, "/toNode"); err != nil {
		return to, nil, err
	}
	return to, &protocol.SessionRewindResult{Head: st.row.Head, Nodes: st.row.Head.Generation - to.at.Generation, Seq: st.row.Seq}, nil
}

// beforeTurn is the node of the active path that a turn began at.
func (st *state) beforeTurn(ctx context.Context, turn protocol.TurnID) (protocol.NodeID, error) {
	found := false
	for n, err := range st.back(ctx) {
		switch {
		case err != nil:
			return "", err
		case n.TurnID == turn:
			found = true
		case found:
			return n.ID, nil
		}
	}
	return "", &persistence.NotFoundError{What: "turn", ID: string(turn)}
}

// back are the nodes of the active path, the leaf first.
func (st *state) back(ctx context.Context) iter.Seq2[*protocol.Node, error] {
	return func(yield func(*protocol.Node, error) bool) {
		at := persistence.Cursor{Branch: st.branch, Generation: st.row.Head.Generation}
		for !at.Done {
			var nodes []protocol.Node
			var err error
			if nodes, at, err = st.eng.store.Path(ctx, at, 100); err != nil {
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

func (e *Engine) node(ctx context.Context, id protocol.NodeID) (*protocol.Node, error) {
	nodes, err := e.store.Nodes(ctx, []protocol.NodeID{id})
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		return nil, &persistence.NotFoundError{What: "node", ID: string(id)}
	}
	return &nodes[0], nil
}

// restable refuses a node after which a tool call would lack its result.
func restable(n *protocol.Node, pointer string) error {
	if n.Message != nil && len(n.Message.Calls()) > 0 {
		return param.Bad(pointer, "is a message with tool calls, whose results come after it; choose the node before or after")
	}
	return nil
}

// moveLeaf adds to a change that the leaf moves to an ancestor.
func (st *state) moveLeaf(ctx context.Context, c *change.Change, to target, result *protocol.SessionRewindResult) {
	left := st.row.Head.Leaf
	result.Pinned = left
	result.Head = protocol.Head{Revision: st.row.Head.Revision + 1, Leaf: to.node.ID, Generation: to.at.Generation, Frame: to.node.Frame}
	c.Rewind, c.Pins = to.node.ID, []persistence.Pin{{Node: left, Reason: "rewound from", AtMs: now()}}
	c.TellOf(protocol.Event{Type: protocol.EventSessionRewound, Head: &result.Head})
	c.Then(func() { st.leafMoved(ctx) })
}

func (st *state) leafMoved(ctx context.Context) {
	st.history = nil
	row, err := st.eng.store.Session(ctx, st.id)
	if err != nil {
		st.broken = err // the branch is not known: load the session again
		return
	}
	st.branch = row.Branch
}

// idle refuses what must not come between the parts of a turn or a command.
func (st *state) idle() error {
	switch {
	case len(st.queue.Turns()) > 0:
		return &TurnActiveError{TurnID: st.queue.Turns()[0].ID}
	case st.holds.held():
		return ErrSessionInUse
	}
	return nil
}
