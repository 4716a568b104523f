package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"lashd/engine/feed"
	"lashd/engine/graph"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// logEvent is a durable event: what observers see of it is in Event, what is stored is the same without the item and without what
// inputs say, to which the log only refers.
type logEvent struct {
	Ref *ref `json:"ref,omitempty"`
	protocol.Event
}

// stored is the event as a row of the log: no session, no seq, no item, and of inputs only what changes.
func (e logEvent) stored() persistence.Event {
	e.SessionID, e.Seq = "", 0
	if e.Ref != nil {
		e.Item = nil
	}
	if e.long() {
		e.Input = nil
	}
	e.Queue = bare(e.Queue)
	return persistence.Event{Type: e.Type, Body: encode(e)}
}

// wire is the event as observers get it. body is what stored gave, which is the wire form of all events but those
// about items and inputs.
func (e logEvent) wire(id protocol.SessionID, seq protocol.Seq, body []byte) []byte {
	if e.Ref != nil || len(e.Queue) > 0 || e.long() {
		e.SessionID, e.Seq = id, seq
		return encode(e.Event)
	}
	return splice(id, seq, body)
}

// splice puts session and seq in front of a stored body.
func splice(id protocol.SessionID, seq protocol.Seq, body []byte) []byte {
	b := make([]byte, 0, len(body)+len(id)+40)
	b = append(b, `{"sessionId":`...)
	b = append(b, encode(id)...)
	b = append(b, `,"seq":`...)
	b = strconv.AppendUint(b, uint64(seq), 10)
	b = append(b, ',')
	return append(b, body[1:]...)
}

// commit makes a change of the session durable and then tells observers. It fences on the seq, so that nothing is
// written if another daemon wrote meanwhile. After an error nothing in memory has changed; one that leaves open what
// the store holds has the session loaded again.
func (st *state) commit(ctx context.Context, c *persistence.Commit, events ...logEvent) (persistence.Result, error) {
	return st.commitShown(ctx, c, nil, events...)
}

// commitShown is commit for what was shown while it came in: the open items that the events tell of end with them,
// the others are withdrawn.
func (st *state) commitShown(ctx context.Context, c *persistence.Commit, shown []*feed.Item, events ...logEvent) (persistence.Result, error) {
	c.Session, c.AtMs = st.row.ID, now()
	seq := st.row.Seq
	c.Fence.Seq = &seq
	inherited := st.inherit(c)
	for i := range events {
		if events[i].AtMs == 0 {
			events[i].AtMs = c.AtMs
		}
		c.Events = append(c.Events, events[i].stored())
	}
	// Nothing cuts off the wait for it: nobody could tell then whether it is stored.
	res, err := st.eng.store.Commit(context.WithoutCancel(ctx), c)
	if err == nil && res.Replayed {
		err = errReplayed
	}
	if err != nil {
		st.commitFailed(err)
		return res, err
	}
	inherited()
	st.row.Head, st.row.UpdatedAtMs = res.Head, c.AtMs
	wires := make([][]byte, len(events))
	for i := range events {
		st.row.Seq++
		wires[i] = events[i].wire(st.row.ID, st.row.Seq, c.Events[i].Body)
	}
	told, untold := tell(shown, events)
	st.feed.Publish(wires, st.row.Seq, told, untold)
	st.surface(events)
	return res, nil
}

// errReplayed means that the commit's receipt is known: another request with its key came first.
var errReplayed = errors.New("the idempotency key was used meanwhile")

func (st *state) commitFailed(err error) {
	for _, sure := range []error{
		persistence.ErrFull, persistence.ErrBusy, persistence.ErrBudget, persistence.ErrInvalid, persistence.ErrReceiptConflict,
		persistence.ErrExists, persistence.ErrNotFound, persistence.ErrNotRetained, errReplayed,
	} {
		if errors.Is(err, sure) {
			return
		}
	}
	if _, stale := errors.AsType[*persistence.StaleBranchError](err); stale {
		return
	}
	st.eng.Trace.append(TraceStoreError, TraceRecord{SessionID: st.id}, tracedError{Error: err.Error()})
	st.broken = err
}

// tell sorts open items into those that an event is about, and the others.
func tell(shown []*feed.Item, events []logEvent) (told, untold []*feed.Item) {
	for _, o := range shown {
		known := slices.ContainsFunc(events, func(e logEvent) bool {
			return e.Item != nil && e.ItemID == o.ID() && e.Item.Kind == o.Kind()
		})
		if known {
			told = append(told, o)
		} else {
			untold = append(untold, o)
		}
	}
	return told, untold
}

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
		return splice(s.id, row.Seq, row.Body), nil
	}
	e, err := s.event(ctx, row, refs)
	if err != nil {
		return nil, err
	}
	return encode(e), nil
}

// event is an event of the log as observers get it.
func (s *session) event(ctx context.Context, row persistence.StoredEvent, refs *references) (protocol.Event, error) {
	var e logEvent
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

// ref is how a log event names the item it is about.
type ref = graph.Ref

func now() int64 { return time.Now().UnixMilli() }

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return b
}
