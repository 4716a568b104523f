package plugin

import "lashd/rpc/protocol"

// NewSession asks for a session that starts there, with plugins and tools as in a new one. Whatever else it shall have is set
// in the request. A request that comes as JSON and says nothing of plugins means that they are as where it starts.
func NewSession(start protocol.SessionStart) *protocol.SessionNewParams {
	return &protocol.SessionNewParams{Start: start, PluginSource: protocol.PluginsFresh}
}

// NewChild is NewSession for a child of the session that asks.
func NewChild(start protocol.SessionStart) *protocol.SessionNewParams {
	p := NewSession(start)
	p.Relation.Kind = protocol.RelationChild
	return p
}
