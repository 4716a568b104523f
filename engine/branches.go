package engine

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"lashd/engine/graph"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Fork makes a session that shares another's history up to a node: the leaf, a node of the active path, or a pinned one.
func (e *Engine) Fork(ctx context.Context, p *protocol.SessionForkParams) (*protocol.SessionNewResult, error) {
	if catalogs := []protocol.ForkCatalog{"", protocol.ForkInherit, protocol.ForkFresh}; !slices.Contains(catalogs, p.ToolCatalog) {
		return nil, bad("/toolCatalog", "must be one of %v", catalogs[1:])
	}
	if err := checkTitle(p.Title); err != nil {
		return nil, err
	}
	return single(ctx, e, "session/fork", p.Key(), p, func(rc receipt) (*protocol.SessionNewResult, error) {
		return e.born(ctx, &birth{id: protocol.NewSessionID(), at: p.AtNode, freshTools: p.ToolCatalog == protocol.ForkFresh, params: &protocol.SessionNewParams{
			Title: p.Title, Start: protocol.SessionStart{Kind: protocol.StartExisting, SessionID: p.SessionID},
			PluginSource: protocol.PluginsFork, Relation: protocol.Relation{Kind: protocol.RelationRoot},
		}}, rc)
	})
}

// Rewind moves a session's leaf to an ancestor. What came after it stays, pinned, and can be forked from. It may bring back files,
// too, or only these.
func (e *Engine) Rewind(ctx context.Context, p *protocol.SessionRewindParams) (*protocol.SessionRewindResult, error) {
	if err := checkRewind(p); err != nil {
		return nil, err
	}
	if p.Files != "" {
		return e.rewindFiles(ctx, p)
	}
	return mutate(ctx, e, p.SessionID, "session/rewind", p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.SessionRewindResult, error) {
		if err := st.idle(); err != nil {
			return nil, err
		}
		to, result, err := st.leafFor(ctx, p)
		if err != nil || p.DryRun || result.Nodes == 0 {
			return result, err
		}
		c := &persistence.Commit{}
		event := st.moveLeaf(c, to, result)
		result.Seq = st.row.Seq + 1
		c.Receipt = rc.with(result)
		done, err := st.commit(ctx, c, event)
		if err != nil {
			return nil, err
		}
		result.Head = done.Head
		st.leafMoved(ctx)
		return result, nil
	})
}

// checkRewind sees to it that a rewind says where to, once.
func checkRewind(p *protocol.SessionRewindParams) error {
	if known := []protocol.RewindFiles{"", protocol.RewindAlso, protocol.RewindOnly}; !slices.Contains(known, p.Files) {
		return bad("/files", "must be one of %v", known[1:])
	}
	ways := 0
	for _, given := range []bool{p.ToNode != "", p.ToTurn != "", p.ToPoint != ""} {
		if given {
			ways++
		}
	}
	switch {
	case ways != 1:
		return bad("/toNode", "exactly one of toNode, toTurn and toPoint must be given")
	case p.ToPoint != "" && p.Files != protocol.RewindOnly:
		return bad("/toPoint", "is for files only")
	}
	return nil
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
		return bad(pointer, "is a message with tool calls, whose results come after it; choose the node before or after")
	}
	return nil
}

// moveLeaf has a commit move the leaf to an ancestor, and gives what is told of that. leafMoved is called once it is durable.
func (st *state) moveLeaf(c *persistence.Commit, to target, result *protocol.SessionRewindResult) logEvent {
	left := st.row.Head.Leaf
	result.Pinned = left
	result.Head = protocol.Head{Revision: st.row.Head.Revision + 1, Leaf: to.node.ID, Generation: to.at.Generation, Frame: to.node.Frame}
	c.Rewind, c.Pins = to.node.ID, []persistence.Pin{{Node: left, Reason: "rewound from", AtMs: now()}}
	return logEvent{Event: protocol.Event{Type: protocol.EventSessionRewound, Head: &result.Head}}
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
	result := &protocol.GraphAppendResult{Status: protocol.Appended, Seq: st.row.Seq}
	c := &persistence.Commit{Requires: p.RequiresAncestorNodeID}
	var events []logEvent
	for i, body := range p.Nodes {
		n := body.Node(protocol.DeriveNodeID(st.id, operation, i), now())
		c.Nodes = append(c.Nodes, n)
		result.NodeIDs, result.Leaf = append(result.NodeIDs, n.ID), n.ID
		events = append(events, appendedEvents(n)...)
	}
	result.Seq += protocol.Seq(len(events))
	c.Receipt = rc.with(result)
	before := st.row.Head.Leaf
	pinned := st.pin(c)
	done, err := st.commit(ctx, c, events...)
	if stale, ok := errors.AsType[*persistence.StaleBranchError](err); ok {
		return &protocol.GraphAppendResult{Status: protocol.StaleBranch, Leaf: stale.Leaf, Seq: st.row.Seq}, nil
	}
	if err != nil {
		return nil, err
	}
	pinned()
	st.grow(before, done.Nodes)
	return result, nil
}

// appendedEvents tell of nodes that were added outside of a turn. A call is told of with its result.
func appendedEvents(nodes ...protocol.Node) []logEvent {
	var events []logEvent
	items, refs := graph.Shown(nodes)
	for i := range items {
		item := &items[i]
		if p := item.Plugin; p != nil {
			events = append(events, logEvent{Event: protocol.Event{Type: protocol.EventPluginCustom, Plugin: p.Plugin, Name: p.Type, Body: p.Body}})
			continue
		}
		events = append(events, logEvent{Ref: &refs[i], Event: protocol.Event{Type: protocol.EventItemCompleted, ItemID: item.ID, Item: item}})
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
		c := &persistence.Commit{Pins: []persistence.Pin{{Node: p.NodeID, Reason: p.Reason, AtMs: now()}}, Receipt: rc.with(result)}
		_, err := st.commit(ctx, c)
		return result, err
	})
}

// Unpin lets a node go. One that was not pinned is no error.
func (e *Engine) Unpin(ctx context.Context, p *protocol.GraphPinParams) (*protocol.SeqResult, error) {
	return mutate(ctx, e, p.SessionID, "graph/unpin", p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.SeqResult, error) {
		result := &protocol.SeqResult{Seq: st.row.Seq}
		_, err := st.commit(ctx, &persistence.Commit{Unpin: []protocol.NodeID{p.NodeID}, Receipt: rc.with(result)})
		return result, err
	})
}

// idle refuses what must not come between the parts of a turn or a command.
func (st *state) idle() error {
	switch {
	case len(st.turns) > 0:
		return &TurnActiveError{TurnID: st.turns[0].ID}
	case st.writer != nil:
		return ErrSessionInUse
	}
	return nil
}
