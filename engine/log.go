package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// logEvent is a durable event: what observers see of it is in Event, what is stored is the same without the item,
// which the log only refers to.
type logEvent struct {
	Ref *ref `json:"ref,omitempty"`
	protocol.Event
}

// stored is the event as a row of the log: no session, no seq, no item.
func (e logEvent) stored() persistence.Event {
	e.SessionID, e.Seq = "", 0
	if e.Ref != nil {
		e.Item = nil
	}
	return persistence.Event{Type: e.Type, Body: encode(e)}
}

// wire is the event as observers get it. body is what stored gave, which is the wire form of all events but those
// about items.
func (e logEvent) wire(id protocol.SessionID, seq protocol.Seq, body []byte) []byte {
	if e.Ref != nil {
		e.SessionID, e.Seq = id, seq
		return encode(e.Event)
	}
	return splice(id, seq, body)
}

// splice puts session and seq in front of a stored body.
func splice(id protocol.SessionID, seq protocol.Seq, body []byte) []byte {
	b := make([]byte, 0, len(body)+len(id)+40)
	b = append(b, `{"sessionId":`...)
	b = appendQuoted(b, string(id))
	b = append(b, `,"seq":`...)
	b = strconv.AppendUint(b, uint64(seq), 10)
	b = append(b, ',')
	return append(b, body[1:]...)
}

// commit makes a change of the session durable and then tells observers. It fences on the seq, so that nothing is
// written if another daemon wrote meanwhile. After an error nothing in memory has changed.
func (st *state) commit(ctx context.Context, c *persistence.Commit, events ...logEvent) (persistence.Result, error) {
	c.Session, c.AtMs = st.row.ID, now()
	seq := st.row.Seq
	c.Fence.Seq = &seq
	for i := range events {
		if events[i].AtMs == 0 {
			events[i].AtMs = c.AtMs
		}
		c.Events = append(c.Events, events[i].stored())
	}
	res, err := st.eng.store.Commit(ctx, c)
	if err != nil || res.Replayed {
		return res, err
	}
	st.row.Head, st.row.UpdatedAtMs = res.Head, c.AtMs
	wires := make([][]byte, len(events))
	for i := range events {
		st.row.Seq++
		wires[i] = events[i].wire(st.row.ID, st.row.Seq, c.Events[i].Body)
	}
	if len(wires) > 0 {
		st.feed.publish(wires, st.row.Seq)
	}
	return res, nil
}

// replay reads events from the log as observers get them.
func (s *session) replay(ctx context.Context, after protocol.Seq, limit int) ([][]byte, protocol.Seq, error) {
	page, err := s.eng.store.Events(ctx, s.key, after, limit)
	if err != nil {
		return nil, after, err
	}
	events := make([][]byte, len(page))
	for i, row := range page {
		if events[i], err = s.expand(ctx, row); err != nil {
			return nil, after, fmt.Errorf("event %d: %w", row.Seq, err)
		}
		after = row.Seq
	}
	return events, after, nil
}

// expand puts the item back into an event that refers to one.
func (s *session) expand(ctx context.Context, row persistence.StoredEvent) ([]byte, error) {
	switch row.Type {
	case protocol.EventItemStarted, protocol.EventItemCompleted:
	default:
		return splice(s.id, row.Seq, row.Body), nil
	}
	var e logEvent
	if err := json.Unmarshal(row.Body, &e); err != nil {
		return nil, err
	}
	if e.Ref != nil {
		item, err := s.resolve(ctx, *e.Ref)
		if err != nil {
			return nil, err
		}
		e.Item = item
	}
	e.SessionID, e.Seq = s.id, row.Seq
	return encode(e.Event), nil
}

// resolve finds an item among the nodes of the running turn, then in the store. The item of a turn that never became
// history is nil: its event then carries only its id.
func (s *session) resolve(ctx context.Context, r ref) (*protocol.Item, error) {
	var failed error
	item, ok := r.Resolve(func(id protocol.NodeID) *protocol.Node {
		if n := s.draft(id); n != nil {
			return n
		}
		nodes, err := s.eng.store.Nodes(ctx, []protocol.NodeID{id})
		if err != nil || len(nodes) == 0 {
			failed = err
			return nil
		}
		return &nodes[0]
	})
	if !ok {
		return nil, failed
	}
	return &item, nil
}
