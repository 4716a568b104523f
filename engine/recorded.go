package engine

import (
	"bytes"
	"maps"
	"slices"

	"lashd/engine/plugin"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// recorded are the turn options that the session's protocol has recorded. It never changes: another one takes its place.
type recorded struct {
	All    *protocol.TurnOptions                     `json:"all,omitempty"`
	Frames map[protocol.FrameID]protocol.TurnOptions `json:"frames,omitempty"` // where they are others
}

// of are the options for a frame; nil: there are none.
func (r recorded) of(frame protocol.FrameID) *protocol.TurnOptions {
	if o, ok := r.Frames[frame]; ok {
		return &o
	}
	return r.All
}

// with is what is recorded then.
func (r recorded) with(frame protocol.FrameID, m *plugin.Materialized) recorded {
	if m.AllFrames {
		return recorded{All: &m.Options}
	}
	next := recorded{All: r.All, Frames: maps.Clone(r.Frames)}
	if next.Frames == nil {
		next.Frames = map[protocol.FrameID]protocol.TurnOptions{}
	}
	next.Frames[frame] = m.Options
	return next
}

// record stores what the protocol said when it was opened, unless that is what is stored.
func (st *state) record(m *plugin.Materialized) error {
	if m == nil {
		return nil
	}
	next := st.recorded.with(st.row.Head.Frame, m)
	if bytes.Equal(encode(next), encode(st.recorded)) {
		return nil
	}
	_, err := st.commit(st.ctx, &persistence.Commit{Component: []persistence.Component{{Name: componentProtocol, Body: encode(next)}}})
	if err == nil {
		st.recorded = next
	}
	return err
}

// inherit gives a frame that a commit opens the options of the frame that it opens from. What it gives is called once the
// commit is durable.
func (st *state) inherit(c *persistence.Commit) (inherited func()) {
	options, own := st.recorded.Frames[st.row.Head.Frame]
	opens := slices.IndexFunc(c.Nodes, func(n protocol.Node) bool { return n.FrameOpen != nil })
	if !own || opens < 0 {
		return func() {}
	}
	next := st.recorded.with(protocol.FrameID(c.Nodes[opens].ID), &plugin.Materialized{Options: options})
	c.Component = append(c.Component, persistence.Component{Name: componentProtocol, Body: encode(next)})
	return func() { st.recorded = next }
}
