package engine

import (
	"context"
	"slices"

	"lashd/engine/approval"
	"lashd/engine/monitor"
	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Fork creates a session that shares another session's history up to a node: the leaf, a node of
// the active path, or a pinned node. The history is shared, not copied; see forkHistory in
// persistence/forkhistory.go.
func (h *History) Fork(ctx context.Context, p *protocol.SessionForkParams) (*protocol.SessionNewResult, error) {
	if catalogs := []protocol.ForkCatalog{"", protocol.ForkInherit, protocol.ForkFresh}; !slices.Contains(catalogs, p.ToolCatalog) {
		return nil, param.NotOneOf("/toolCatalog", catalogs)
	}
	if err := param.CheckTitle(p.Title); err != nil {
		return nil, err
	}
	return receipt.Once(ctx, h.eng.receipts, "session/fork", p.Key(), p, func(rc receipt.Request) (*protocol.SessionNewResult, error) {
		return h.eng.Sessions.createOnce(ctx, &sessionDraft{id: protocol.NewSessionID(), at: p.AtNode, freshTools: p.ToolCatalog == protocol.ForkFresh, params: &protocol.SessionNewParams{
			Title: p.Title, Start: protocol.SessionStart{Kind: protocol.StartExisting, SessionID: p.SessionID},
			PluginSource: protocol.PluginsFork, Relation: protocol.Relation{Kind: protocol.RelationRoot},
		}}, rc)
	})
}

// branch commits a session that starts at a node of st's session: at its leaf, at a snapshot, or at
// b.at. It runs on the actor of the source. kept is the plugin state that was captured for the new
// session.
func (b *sessionDraft) branch(ctx context.Context, st *state, kept idleCapture, rc receipt.Request) (*protocol.SessionNewResult, error) {
	source, pointer := &protocol.ForkSource{SessionID: st.id, Node: st.row.Head.Leaf}, "/start"
	if b.at != "" {
		source.Node, pointer = b.at, "/atNode"
	}
	if name := b.params.Start.Snapshot; name != "" {
		s, err := b.eng.store.Snapshot(ctx, st.key, name)
		if err != nil {
			return nil, err
		}
		source.Node = s.Node
	}
	node, err := b.eng.node(ctx, source.Node)
	if err != nil {
		return nil, err
	}
	if err := param.CheckLeaf(node, pointer); err != nil {
		return nil, err
	}
	if b.turns = st.row.TurnIndex; source.Node != st.row.Head.Leaf {
		if b.turns, err = persistence.TurnCount(ctx, b.eng.store.Reader, source.Node); err != nil {
			return nil, err
		}
	}
	c := b.change(source)
	kept.addTo(c, st)
	st.stored.facts.CopyTo(c, b.facts)
	if b.by != nil { // standing approvals and monitors stay with the source session
		c.Component = append(c.Component, persistence.Component{Name: approval.Component}, persistence.Component{Name: monitor.Component})
	}
	if b.freshTools {
		c.Component = append(c.Component, persistence.Component{Name: componentTools}, persistence.Component{Name: componentOverlay})
	}
	return b.eng.Sessions.create(ctx, c, rc)
}
