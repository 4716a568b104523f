package engine

import (
	"bytes"
	"maps"
	"slices"

	"lashd/engine/change"
	"lashd/engine/plugin"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// recorded are the turn options that the session's protocol has recorded. It never changes: another one takes its place.
// Frames open from each other without end, mostly with the same options: so these stand there once.
type recorded struct {
	All    *protocol.TurnOptions    `json:"all,omitempty"`
	Own    []protocol.TurnOptions   `json:"own,omitempty"`    // of frames where they are others
	Frames map[protocol.FrameID]int `json:"frames,omitempty"` // which of those
}

// of are the options for a frame; nil: there are none.
func (r recorded) of(frame protocol.FrameID) *protocol.TurnOptions {
	if i, ok := r.Frames[frame]; ok {
		return &r.Own[i]
	}
	return r.All
}

// with is what is recorded then.
func (r recorded) with(frame protocol.FrameID, m *plugin.Materialized) recorded {
	if m.AllFrames {
		return recorded{All: &m.Options}
	}
	frames := map[protocol.FrameID]protocol.TurnOptions{frame: m.Options}
	for f, i := range r.Frames {
		if f != frame {
			frames[f] = r.Own[i]
		}
	}
	next := recorded{All: r.All, Frames: map[protocol.FrameID]int{}}
	for _, f := range slices.Sorted(maps.Keys(frames)) {
		next.put(f, frames[f])
	}
	return next
}

func (r *recorded) put(frame protocol.FrameID, o protocol.TurnOptions) {
	i := slices.IndexFunc(r.Own, func(known protocol.TurnOptions) bool {
		return known.SchemaVersion == o.SchemaVersion && bytes.Equal(known.Payload, o.Payload)
	})
	if i < 0 {
		i, r.Own = len(r.Own), append(r.Own, o)
	}
	r.Frames[frame] = i
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
	c := st.change(persistence.Commit{})
	st.setRecorded(c, next)
	return st.commit(st.ctx, c)
}

func (st *state) setRecorded(c *change.Change, next recorded) {
	c.Component = append(c.Component, persistence.Component{Name: componentProtocol, Body: encode(next)})
	c.Then(func() { st.recorded = next })
}

// inherit gives a frame that a change opens the options of the frame that it opens from.
func (st *state) inherit(c *change.Change) {
	_, own := st.recorded.Frames[st.row.Head.Frame]
	opens := slices.IndexFunc(c.Nodes, func(n protocol.Node) bool { return n.FrameOpen != nil })
	if !own || opens < 0 {
		return
	}
	next := st.recorded.with(protocol.FrameID(c.Nodes[opens].ID), &plugin.Materialized{Options: *st.recorded.of(st.row.Head.Frame)})
	st.setRecorded(c, next)
}
