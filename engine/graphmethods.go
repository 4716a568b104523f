package engine

import (
	"cmp"
	"context"
	"errors"

	"lashd/engine/change"
	"lashd/engine/graph"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// ReadGraph reads a page of the active path, backwards.
func (e *Engine) ReadGraph(ctx context.Context, p *protocol.GraphReadParams) (*protocol.GraphReadResult, error) {
	row, err := e.store.Session(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	limit, err := pageSize(p.Limit, 200, 500)
	if err != nil {
		return nil, err
	}
	nodes, next, err := e.page(ctx, row, p.Cursor, limit)
	if err != nil {
		return nil, err
	}
	pins, err := e.store.Pins(ctx, row.Key)
	if err != nil {
		return nil, err
	}
	result := &protocol.GraphReadResult{Head: row.Head, Data: list(nodes), Pins: []protocol.PinInfo{}, NextCursor: next}
	for _, pin := range pins {
		result.Pins = append(result.Pins, protocol.PinInfo{NodeID: pin.Node, Reason: pin.Reason, AtMs: pin.AtMs})
	}
	return result, nil
}

// Append adds nodes to the leaf, also beside a running turn, which then commits after them. A required ancestor that
// is no longer on the active path makes the answer staleBranch, and nothing is added. Nor is it if the session's protocol,
// which is told first, refuses them.
func (e *Engine) Append(ctx context.Context, p *protocol.GraphAppendParams) (*protocol.GraphAppendResult, error) {
	if err := cmp.Or(checkAppend(p.Nodes), checkName("/operationId", p.OperationID)); err != nil {
		return nil, err
	}
	key := p.Key()
	if key == "" && p.OperationID != "" {
		key = string(protocol.DigestOf([]byte("append:" + string(p.SessionID) + ":" + p.OperationID)))
	}
	return single(ctx, e, "graph/append", key, p, func(rc receipt) (*protocol.GraphAppendResult, error) {
		return e.appendTold(ctx, cmp.Or(p.OperationID, string(protocol.NewInputID())), p, rc)
	})
}

func checkAppend(nodes []protocol.NodeBody) error {
	if len(nodes) == 0 {
		return bad("/nodes", "must have at least one node")
	}
	if len(nodes) > persistence.MaxCommitNodes {
		return bad("/nodes", "has %d nodes, at most %d", len(nodes), persistence.MaxCommitNodes)
	}
	for i, n := range nodes {
		pointer := "/nodes/" + itoa(i)
		if (n.Message == nil) == (n.Plugin == nil) || n.FrameOpen != nil {
			return bad(pointer, "must have either a message or a plugin body")
		}
		if n.Message != nil {
			if err := checkMessage(pointer+"/message", n.Message); err != nil {
				return err
			}
			if o := n.Message.Origin; o != nil && o.Transient {
				return bad(pointer+"/message/origin/transient", "must not be set: what is appended is stored")
			}
		}
		if n.Plugin != nil && n.Plugin.Type == "" {
			return bad(pointer+"/plugin/type", "must not be empty")
		}
		if n.Plugin != nil && n.Plugin.Plugin != "" {
			return bad(pointer+"/plugin/plugin", "must not be set from outside")
		}
	}
	return nil
}

// checkMessage lets only such messages in from outside that cannot break the pairing of calls and results.
func checkMessage(pointer string, m *protocol.Message) error {
	switch m.Role {
	case protocol.RoleUser, protocol.RoleAssistant, protocol.RoleSystem, protocol.RoleEvent:
	default:
		return bad(pointer+"/role", "must be user, assistant, system or event, not %.40q", m.Role)
	}
	if len(m.Parts) == 0 || len(m.Parts) > maxParts {
		return bad(pointer+"/parts", "must have 1 to %d parts, not %d", maxParts, len(m.Parts))
	}
	for i := range m.Parts {
		if err := checkPart(pointer+"/parts/"+itoa(i), &m.Parts[i]); err != nil {
			return err
		}
	}
	return nil
}

func checkPart(pointer string, p *protocol.Part) error {
	switch p.Kind {
	case protocol.PartText, protocol.PartProse, protocol.PartCommentary, protocol.PartReasoning, protocol.PartError:
	case protocol.PartAttachment:
		if p.Attachment == nil || p.Attachment.Type == "" {
			return bad(pointer+"/attachment", "must name a media type")
		}
	default:
		return bad(pointer+"/kind", "must be text, prose, reasoning, error or attachment, not %.40q", p.Kind)
	}
	switch {
	case p.Call != nil:
		return bad(pointer+"/call", "must not be set from outside")
	case p.Result != nil:
		return bad(pointer+"/result", "must not be set from outside")
	case p.Attachment != nil && p.Kind != protocol.PartAttachment:
		return bad(pointer+"/attachment", "must not be set in a part of kind %s", p.Kind)
	}
	return nil
}

func (st *state) append(ctx context.Context, operation string, p *protocol.GraphAppendParams, rc receipt) (*protocol.GraphAppendResult, error) {
	result := &protocol.GraphAppendResult{Status: protocol.Appended}
	c := st.change(persistence.Commit{Requires: p.RequiresAncestorNodeID})
	for i, body := range p.Nodes {
		n := body.Node(protocol.DeriveNodeID(st.id, operation, i), now())
		c.Nodes = append(c.Nodes, n)
		result.NodeIDs, result.Leaf = append(result.NodeIDs, n.ID), n.ID
		c.Tell(appendedEvents(n)...)
	}
	result.Seq = c.Seq()
	c.Receipt = rc.with(result)
	st.pin(c)
	err := st.commit(ctx, c)
	if stale, ok := errors.AsType[*persistence.StaleBranchError](err); ok {
		return &protocol.GraphAppendResult{Status: protocol.StaleBranch, Leaf: stale.Leaf, Seq: st.row.Seq}, nil
	}
	if err != nil {
		return nil, err
	}
	return result, nil
}

// appendedEvents tell of nodes that were added outside of a turn. A call is told of with its result.
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

// Pin keeps a node of the active path reachable.
func (e *Engine) Pin(ctx context.Context, p *protocol.GraphPinParams) (*protocol.SeqResult, error) {
	return mutate(ctx, e, p.SessionID, "graph/pin", p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.SeqResult, error) {
		if _, err := e.store.Locate(ctx, persistence.Session{Session: st.row, Branch: st.branch}, p.NodeID); err != nil {
			return nil, err
		}
		result := &protocol.SeqResult{Seq: st.row.Seq}
		c := st.change(persistence.Commit{Pins: []persistence.Pin{{Node: p.NodeID, Reason: p.Reason, AtMs: now()}}, Receipt: rc.with(result)})
		return result, st.commit(ctx, c)
	})
}

// Unpin lets a node go. One that was not pinned is no error.
func (e *Engine) Unpin(ctx context.Context, p *protocol.GraphPinParams) (*protocol.SeqResult, error) {
	return mutate(ctx, e, p.SessionID, "graph/unpin", p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.SeqResult, error) {
		result := &protocol.SeqResult{Seq: st.row.Seq}
		c := st.change(persistence.Commit{Unpin: []protocol.NodeID{p.NodeID}, Receipt: rc.with(result)})
		return result, st.commit(ctx, c)
	})
}
