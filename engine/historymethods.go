package engine

import (
	"cmp"
	"context"
	"errors"

	"lashd/engine/change"
	"lashd/engine/graph"
	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// History is the API of a session's nodes: read, append, pin and fork. Its methods are safe for
// concurrent use.
type History struct{ eng *Engine }

// Read returns a page of the active path, newest nodes first, with the head and the pinned nodes.
// It does not load the session.
func (h *History) Read(ctx context.Context, p *protocol.GraphReadParams) (*protocol.GraphReadResult, error) {
	row, err := h.eng.store.Session(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	limit, err := param.PageSize(p.Limit, 200, 500)
	if err != nil {
		return nil, err
	}
	nodes, next, err := h.eng.page(ctx, row, p.Cursor, limit)
	if err != nil {
		return nil, err
	}
	pins, err := h.eng.store.Pins(ctx, row.Key)
	if err != nil {
		return nil, err
	}
	result := &protocol.GraphReadResult{Head: row.Head, Data: list(nodes), Pins: []protocol.PinInfo{}, NextCursor: next}
	for _, pin := range pins {
		result.Pins = append(result.Pins, protocol.PinInfo{NodeID: pin.Node, Reason: pin.Reason, AtMs: pin.AtMs})
	}
	return result, nil
}

// Append adds nodes to the leaf. It may run beside a turn, which then commits after them. If a
// required ancestor is no longer on the active path, the status is staleBranch and nothing is
// added. The session's protocol plugin sees the nodes first and may reject them. An operation id
// works as idempotency key.
func (h *History) Append(ctx context.Context, p *protocol.GraphAppendParams) (*protocol.GraphAppendResult, error) {
	if err := cmp.Or(param.CheckAppend(p.Nodes), param.CheckName("/operationId", p.OperationID)); err != nil {
		return nil, err
	}
	key := p.Key()
	if key == "" && p.OperationID != "" {
		key = string(protocol.DigestOf([]byte("append:" + string(p.SessionID) + ":" + p.OperationID)))
	}
	return receipt.Once(ctx, h.eng.receipts, "graph/append", key, p, func(rc receipt.Request) (*protocol.GraphAppendResult, error) {
		return h.eng.appendAnnounced(ctx, cmp.Or(p.OperationID, string(protocol.NewInputID())), p, rc)
	})
}

// append commits nodes and their blobs at the leaf. It runs on the actor. The node ids derive from the operation,
// so a repeated operation cannot add the nodes twice.
func (h *sessionHistory) append(ctx context.Context, operation string, p *protocol.GraphAppendParams, blobs []persistence.Blob, rc receipt.Request) (*protocol.GraphAppendResult, error) {
	st := h.st
	result := &protocol.GraphAppendResult{Status: protocol.Appended}
	c := st.change(persistence.Commit{Requires: p.RequiresAncestorNodeID, Blobs: blobs})
	for i, body := range p.Nodes {
		n := body.Node(protocol.DeriveNodeID(st.id, operation, i), now())
		c.Nodes = append(c.Nodes, n)
		result.NodeIDs, result.Leaf = append(result.NodeIDs, n.ID), n.ID
		c.Tell(appendedEvents(n)...)
	}
	result.Seq = c.Seq()
	c.Receipt = rc.With(result)
	st.turns.running().pin(c)
	err := st.commit(ctx, c)
	if stale, ok := errors.AsType[*persistence.StaleBranchError](err); ok {
		return &protocol.GraphAppendResult{Status: protocol.StaleBranch, Leaf: stale.Leaf, Seq: st.row.Seq}, nil
	}
	if err != nil {
		return nil, err
	}
	return result, nil
}

// appendedEvents returns the events for nodes that were added outside a turn. A tool call and its
// result make one event.
func appendedEvents(nodes ...protocol.Node) []change.Event {
	var events []change.Event
	items, refs := graph.Shown(nodes)
	for i := range items {
		item := &items[i]
		if p := item.Plugin; p != nil {
			events = append(events, change.Event{Event: protocol.Event{Type: protocol.EventPluginCustom, Plugin: p.Plugin, Name: p.Type, Body: p.Body}})
			continue
		}
		events = append(events, change.Event{Ref: &refs[i], Event: protocol.Event{Type: protocol.EventItemCompleted, ItemID: item.ID, Item: item}})
	}
	return events
}

// Pin keeps a node of the active path reachable for forks after a rewind.
func (h *History) Pin(ctx context.Context, p *protocol.GraphPinParams) (*protocol.SeqResult, error) {
	return mutate(ctx, h.eng, p.SessionID, "graph/pin", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.SeqResult, error) {
		if _, err := h.eng.store.Locate(ctx, st.history.leaf(), p.NodeID); err != nil {
			return nil, err
		}
		result := &protocol.SeqResult{Seq: st.row.Seq}
		c := st.change(persistence.Commit{Pins: []persistence.Pin{{Node: p.NodeID, Reason: p.Reason, AtMs: now()}}, Receipt: rc.With(result)})
		return result, st.commit(ctx, c)
	})
}

// Unpin removes a pin. A node without a pin is no error.
func (h *History) Unpin(ctx context.Context, p *protocol.GraphPinParams) (*protocol.SeqResult, error) {
	return mutate(ctx, h.eng, p.SessionID, "graph/unpin", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.SeqResult, error) {
		result := &protocol.SeqResult{Seq: st.row.Seq}
		c := st.change(persistence.Commit{Unpin: []protocol.NodeID{p.NodeID}, Receipt: rc.With(result)})
		return result, st.commit(ctx, c)
	})
}
