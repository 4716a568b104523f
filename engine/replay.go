package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"lashd/engine/change"
	"lashd/engine/graph"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// replayBytes limits one read of the log: it ends with the event that brings the page to this many
// bytes, so that a subscriber that is far behind does not make the daemon hold a whole log of large
// events.
const replayBytes = 4 << 20

// replay reads up to limit events after a sequence number and returns them encoded as subscribers
// receive them, with the number of the last one. It may return fewer events than the log has; the
// caller asks again from that number. It runs on the goroutine of the subscriber, beside the actor.
func (s *session) replay(ctx context.Context, after protocol.Seq, limit int) ([][]byte, protocol.Seq, error) {
	page, err := s.eng.store.Events(ctx, s.key, after, limit)
	if err != nil {
		return nil, after, err
	}
	refs := newReferences(s, s.key)
	var events [][]byte
	for bytes := 0; len(events) < len(page) && bytes < replayBytes; bytes += len(events[len(events)-1]) {
		row := page[len(events)]
		event, err := s.expand(ctx, row, refs)
		if err != nil {
			return nil, after, fmt.Errorf("event %d: %w", row.Seq, err)
		}
		events, after = append(events, event), row.Seq
	}
	return events, after, nil
}

// expand encodes an event as subscribers receive it. Events that carry items or inputs are stored
// with references to nodes and inputs only; expand puts the referenced content back. If a turn
// never became history, its items no longer exist and the event carries only the item's id.
func (s *session) expand(ctx context.Context, row persistence.StoredEvent, refs *references) ([]byte, error) {
	switch row.Type {
	case protocol.EventItemStarted, protocol.EventItemCompleted, protocol.EventQueueChanged, protocol.EventTurnAccepted:
	default:
		return change.Splice(s.id, row.Seq, row.Body), nil
	}
	e, err := s.event(ctx, row, refs)
	if err != nil {
		return nil, err
	}
	return encode(e), nil
}

// event decodes a stored event and resolves its references. Callers that read several events share
// one references value, so that each node and input is read once.
func (s *session) event(ctx context.Context, row persistence.StoredEvent, refs *references) (protocol.Event, error) {
	var e change.Event
	if err := json.Unmarshal(row.Body, &e); err != nil {
		return e.Event, err
	}
	if e.Ref != nil {
		item, ok := e.Ref.Resolve(func(id protocol.NodeID) *protocol.Node { return refs.node(ctx, id) })
		if ok {
			e.Item = &item
		}
	}
	refs.fill(ctx, &e.Event)
	e.SessionID, e.Seq = s.id, row.Seq
	return e.Event, refs.err
}

// ref names the item of an event by its node and part, and the result that completes it.
type ref = graph.Ref

// now returns the wall clock in milliseconds since 1970, the unit of all stored times.
func now() int64 { return time.Now().UnixMilli() }

// encode marshals a value of lashd's own types. They always can be marshaled, so a failure is a bug
// and panics.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return b
}

// list returns items, or an empty slice for nil: clients rely on [] instead of null on the wire.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// references resolves what stored events refer to and reads each node and input once. It looks for
// nodes in the running turn first, then in the store. It belongs to one goroutine.
type references struct {
	session *session
	key     int64 // of the session in the store
	nodes   map[protocol.NodeID]*protocol.Node
	inputs  map[protocol.InputID]protocol.QueuedInput
	err     error // the first error; lookups after it return nothing
}

// newReferences returns an empty cache for the events of one session. key is the session's key in
// the store.
func newReferences(s *session, key int64) *references {
	return &references{session: s, key: key, nodes: map[protocol.NodeID]*protocol.Node{}, inputs: map[protocol.InputID]protocol.QueuedInput{}}
}

// node returns a node by id, or nil if no such node exists or an earlier lookup failed (see err).
func (r *references) node(ctx context.Context, id protocol.NodeID) *protocol.Node {
	n, ok := r.nodes[id]
	if ok || r.err != nil {
		return n
	}
	if n, r.err = r.session.draft(ctx, id); n == nil && r.err == nil {
		var stored []protocol.Node
		if stored, r.err = r.session.eng.store.Nodes(ctx, []protocol.NodeID{id}); len(stored) > 0 {
			n = &stored[0]
		}
	}
	r.nodes[id] = n
	return n
}

// input returns the current row of an input. Its state may be newer than the event that names it;
// fill puts the state of the event back.
func (r *references) input(ctx context.Context, id protocol.InputID) protocol.QueuedInput {
	in, ok := r.inputs[id]
	if !ok && r.err == nil {
		in, r.err = r.session.eng.store.Input(ctx, r.key, id)
		r.inputs[id] = in
	}
	return in
}

// fill adds the contents of inputs to an event that only names them. States, turns and boundaries
// stay those of the event, because they say what was true when it was written.
func (r *references) fill(ctx context.Context, e *protocol.Event) {
	if e.Type == protocol.EventTurnAccepted && len(e.Input) == 0 {
		for _, id := range e.InputIDs {
			e.Input = append(e.Input, r.input(ctx, id).Input...)
		}
	}
	for i, then := range e.Queue {
		in := r.input(ctx, then.ID)
		in.TurnID, in.State, in.Boundary, in.Refused = then.TurnID, then.State, then.Boundary, then.Refused
		e.Queue[i] = in
	}
}
