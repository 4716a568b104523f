package engine

import (
	"context"

	"lashd/engine/change"
	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Rewind moves a session's leaf back to an ancestor. The nodes after it stay in the store, pinned,
// and can be forked from. With p.Files it restores files as well, or only files.
//
// It needs an idle session: otherwise it fails with *TurnActiveError or ErrSessionInUse. A dry run,
// and a rewind to the present leaf, return the result and store nothing. Plugins keep their state;
// a snapshot restores that too.
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
		to, result, err := st.history.target(ctx, p)
		if err != nil || p.DryRun || result.Nodes == 0 {
			return result, err
		}
		c := st.change(persistence.Commit{})
		st.history.moveLeaf(ctx, c, to, result)
		result.Seq = c.Seq()
		c.Receipt = rc.With(result)
		if err := st.commit(ctx, c); err != nil {
			return nil, err
		}
		result.Head = st.row.Head
		return result, nil
	})
}

// rewindTarget is the node that becomes the leaf, with its place in the session's branches.
type rewindTarget struct {
	node *protocol.Node
	at   persistence.Cursor
}

// target finds the node that a rewind moves to, and checks that it is on the active path. The
// result describes the effect of the rewind: how many nodes it removes from the path. The store is
// not changed.
func (h *sessionHistory) target(ctx context.Context, p *protocol.SessionRewindParams) (to rewindTarget, result *protocol.SessionRewindResult, err error) {
	id, st := p.ToNode, h.st
	if id == "" {
		if id, err = h.beforeTurn(ctx, p.ToTurn); err != nil {
			return to, nil, err
		}
	}
	if to.at, err = st.eng.store.Locate(ctx, h.leaf(), id); err != nil {
		return to, nil, err
	}
	if to.node, err = st.eng.node(ctx, id); err != nil {
		return to, nil, err
	}
	if err := param.CheckLeaf(to.node, "/toNode"); err != nil {
		return to, nil, err
	}
	return to, &protocol.SessionRewindResult{Head: st.row.Head, Nodes: st.row.Head.Generation - to.at.Generation, Seq: st.row.Seq}, nil
}

// beforeTurn returns the node of the active path before the first node of a turn. It fails with
// *persistence.NotFoundError if the turn has no nodes on the path, or none before it.
func (h *sessionHistory) beforeTurn(ctx context.Context, turn protocol.TurnID) (protocol.NodeID, error) {
	found := false
	for n, err := range h.back(ctx, h.leaf(), 100) {
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

// node reads one node from the store. It fails with *persistence.NotFoundError if there is none of
// that id.
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

// moveLeaf adds to a change that the leaf moves to an ancestor, and fills in the result. It pins
// the old leaf so that pruning keeps it. Once the change is stored, the branch is read again; if
// that fails, the session is loaded again.
func (h *sessionHistory) moveLeaf(ctx context.Context, c *change.Change, to rewindTarget, result *protocol.SessionRewindResult) {
	head := h.st.row.Head
	result.Pinned = head.Leaf
	result.Head = protocol.Head{Revision: head.Revision + 1, Leaf: to.node.ID, Generation: to.at.Generation, Frame: to.node.Frame}
	c.Rewind, c.Pins = to.node.ID, []persistence.Pin{{Node: head.Leaf, Reason: "rewound from", AtMs: now()}}
	c.TellOf(protocol.Event{Type: protocol.EventSessionRewound, Head: &result.Head})
	c.Then(func() {
		if err := h.reload(ctx); err != nil {
			h.st.broken = err // the branch is not known: load the session again
		}
	})
}
