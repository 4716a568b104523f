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

// replayBytes is how large events are, together, of which no more are read at once.
const replayBytes = 4 << 20

// replay reads events from the log as observers get them.
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

// expand puts the item, or the inputs, back into an event that refers to them. The item of a turn that never became history is gone:
// its event then carries only its id.
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

// event is an event of the log as observers get it.
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

// ref is how an event names the item that it is about.
type ref = graph.Ref

func now() int64 { return time.Now().UnixMilli() }

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return b
}

// list is never null on the wire.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// references finds what events of the log refer to, each thing once: nodes of the running turn, then those of the store; inputs.
type references struct {
	session *session
	key     int64 // of the session in the store
	nodes   map[protocol.NodeID]*protocol.Node
	inputs  map[protocol.InputID]protocol.QueuedInput
	err     error // the first error; lookups after it return nothing
}

func newReferences(s *session, key int64) *references {
	return &references{session: s, key: key, nodes: map[protocol.NodeID]*protocol.Node{}, inputs: map[protocol.InputID]protocol.QueuedInput{}}
}

// node is nil if there is no such node any more.
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

// input is an input as it is now.
func (r *references) input(ctx context.Context, id protocol.InputID) protocol.QueuedInput {
	in, ok := r.inputs[id]
	if !ok && r.err == nil {
		in, r.err = r.session.eng.store.Input(ctx, r.key, id)
		r.inputs[id] = in
	}
	return in
}

// fill puts back what inputs say, where an event only names them.
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
