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

// recordedOptions stores the turn options that drivers have recorded, by frame. Values never
// change; with returns new ones. Frames open from each other without limit and mostly share
// options, so equal options are stored once.
type recordedOptions struct {
	All    *protocol.TurnOptions    `json:"all,omitempty"`    // of frames without their own
	Own    []protocol.TurnOptions   `json:"own,omitempty"`    // distinct options of single frames
	Frames map[protocol.FrameID]int `json:"frames,omitempty"` // index into Own
}

// of returns the options of a frame, or nil.
func (r recordedOptions) of(frame protocol.FrameID) *protocol.TurnOptions {
	if i, ok := r.Frames[frame]; ok {
		return &r.Own[i]
	}
	return r.All
}

// with returns a copy in which a frame, or all frames, have new options. Options that no frame uses
// any more are left out.
func (r recordedOptions) with(frame protocol.FrameID, m *plugin.Materialized) recordedOptions {
	if m.AllFrames {
		return recordedOptions{All: &m.Options}
	}
	frames := map[protocol.FrameID]protocol.TurnOptions{frame: m.Options}
	for f, i := range r.Frames {
		if f != frame {
			frames[f] = r.Own[i]
		}
	}
	next := recordedOptions{All: r.All, Frames: map[protocol.FrameID]int{}}
	for _, f := range slices.Sorted(maps.Keys(frames)) {
		next.put(f, frames[f])
	}
	return next
}

// put assigns options to a frame and reuses an equal entry of Own.
func (r *recordedOptions) put(frame protocol.FrameID, o protocol.TurnOptions) {
	i := slices.IndexFunc(r.Own, func(known protocol.TurnOptions) bool {
		return known.SchemaVersion == o.SchemaVersion && bytes.Equal(known.Payload, o.Payload)
	})
	if i < 0 {
		i, r.Own = len(r.Own), append(r.Own, o)
	}
	r.Frames[frame] = i
}

// record adds to a change the options that the driver recorded for a frame, unless the same options
// are stored.
func (s *storedState) record(c *change.Change, frame protocol.FrameID, m *plugin.Materialized) {
	if m == nil {
		return
	}
	next := s.recorded.with(frame, m)
	if bytes.Equal(encode(next), encode(s.recorded)) {
		return
	}
	s.setRecorded(c, next)
}

// setRecorded adds new recorded options to a change; the cache follows once it is stored.
func (s *storedState) setRecorded(c *change.Change, next recordedOptions) {
	c.Component = append(c.Component, persistence.Component{Name: componentProtocol, Body: encode(next)})
	c.Then(func() { s.recorded = next })
}

// inherit gives a frame that a change opens the options of the frame it opens from, if that frame
// has options of its own. Every commit calls it, so a new frame can never lose them.
func (s *storedState) inherit(c *change.Change, from protocol.FrameID) {
	_, own := s.recorded.Frames[from]
	opens := slices.IndexFunc(c.Nodes, func(n protocol.Node) bool { return n.FrameOpen != nil })
	if !own || opens < 0 {
		return
	}
	next := s.recorded.with(protocol.FrameID(c.Nodes[opens].ID), &plugin.Materialized{Options: *s.recorded.of(from)})
	s.setRecorded(c, next)
}
