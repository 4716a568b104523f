package trigger

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/engine/schedule"
	"lashd/engine/tool"
	"lashd/internal/glob"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// active is a trigger in memory. It belongs to the loop's goroutine.
type active struct {
	persistence.Trigger
	// schedule is set for cron.tick.
	schedule *schedule.Schedule
	// since is the time up to which the schedule has been handled.
	since time.Time
	// next is when the schedule is due. Zero: never.
	next time.Time
	// glob is set for file.changed.
	glob glob.Glob
	// files is the result of the last scan. Nil: there was none.
	files fileStamps
	// problem is the reason why file changes are missed or noticed late.
	problem string
}

// parseSource parses the schedule or the glob. An error means that the stored spec is
// invalid, for example because the system no longer knows its time zone.
func (a *active) parseSource(now time.Time) error {
	switch {
	case a.Source.Cron != nil:
		s, err := schedule.Parse(*a.Source.Cron, now)
		if err != nil {
			return err
		}
		a.schedule, a.since = &s, time.UnixMilli(a.TickedMs)
	case a.Source.File != nil:
		g, err := glob.Compile(a.Source.File.Glob)
		if err != nil {
			return err
		}
		a.glob = g
	}
	return nil
}

// public returns the trigger for clients, with its current problem and next due time.
func (a *active) public() protocol.Trigger {
	t := a.Trigger.Trigger
	t.Problem = cmp.Or(t.Problem, a.problem)
	if !a.next.IsZero() {
		t.NextAtMs = a.next.UnixMilli()
	}
	return t
}

// target returns the session that gets an occurrence. For a new session its id derives from
// the trigger and the occurrence, so a retried delivery finds the session that an earlier
// attempt has started.
func (a *active) target(id protocol.OccurrenceID) protocol.SessionID {
	if a.Action.Kind == protocol.TriggerStarts {
		return protocol.DeriveSessionID("trigger", string(a.ID), string(id))
	}
	return cmp.Or(a.Action.SessionID, a.SessionID)
}

// event is an occurrence that is not recorded yet. The three keys together identify it.
type event struct {
	typ, sourceKey, key string
	payload             json.RawMessage
	// only is the one trigger that may match. Nil: all triggers.
	only *active
}

// id returns the id of the occurrence. Equal events have equal ids, so each is recorded
// once.
func (e event) id() protocol.OccurrenceID {
	return protocol.DeriveOccurrenceID(e.typ, e.sourceKey, e.key)
}

// matches reports whether an enabled trigger waits for the event and its filter accepts the
// payload.
func (a *active) matches(e event) bool {
	switch {
	case !a.Enabled || a.Source.Type != e.typ, e.only != nil && e.only != a:
		return false
	case e.only == nil && a.Source.Key != "" && a.Source.Key != e.sourceKey:
		return false
	}
	return tool.CheckValue(a.Filter, e.payload) == nil
}

// occurrence returns the row of an event, with a reserved delivery for each matching
// trigger.
func (l *loop) occurrence(e event, atMs int64) persistence.Occurred {
	o := persistence.Occurred{Occurrence: protocol.Occurrence{
		ID: e.id(), Type: e.typ, SourceKey: e.sourceKey, Key: e.key, Payload: e.payload, AtMs: atMs, Deliveries: []protocol.TriggerDelivery{},
	}}
	for _, a := range l.inOrder() {
		if !a.matches(e) {
			continue
		}
		o.Actions = append(o.Actions, a.Action)
		o.Deliveries = append(o.Deliveries, protocol.TriggerDelivery{
			TriggerID: a.ID, Key: a.Key, State: protocol.DeliveryReserved, SessionID: a.target(o.ID), AtMs: atMs,
		})
	}
	return o
}

// record commits c together with the occurrences of events that are not recorded yet, and
// then queues their deliveries. After an error nothing is stored or queued.
func (l *loop) record(ctx context.Context, c *persistence.Commit, events ...event) error {
	c.AtMs = now()
	for _, e := range events {
		_, err := l.Store.Occurrence(ctx, e.id())
		if err == nil {
			continue
		}
		if !isMissing(err) {
			return err
		}
		c.Triggers.Occurred = append(c.Triggers.Occurred, l.occurrence(e, c.AtMs))
	}
	if err := l.commit(ctx, c); err != nil {
		return err
	}
	for _, o := range c.Triggers.Occurred {
		l.out.add(o)
	}
	return nil
}

// Emit records an event from a client or a plugin. When it returns, the occurrence and its
// deliveries are durable; the deliveries themselves follow later. Emitting the same
// occurrence key again returns the first occurrence, marked as a duplicate, or
// persistence.ErrExists if the payload differs.
func (r *Registry) Emit(ctx context.Context, p *protocol.TriggerEmitParams) (*protocol.TriggerEmitResult, error) {
	const method = "trigger/emit"
	e, err := r.checkEmit(ctx, p)
	if err != nil {
		return receipt.Repeated[protocol.TriggerEmitResult](ctx, r.Store, method, p.IdempotencyKey, p, err)
	}
	return receipt.Once(ctx, r.Receipts, method, p.IdempotencyKey, p, func(rc receipt.Request) (*protocol.TriggerEmitResult, error) {
		return on(ctx, r, func(ctx context.Context, l *loop) (*protocol.TriggerEmitResult, error) { return l.emit(ctx, e, rc) })
	})
}

// CheckEmit returns the error with which Emit would reject an event, without recording it.
func (r *Registry) CheckEmit(ctx context.Context, p *protocol.TriggerEmitParams) error {
	_, err := r.checkEmit(ctx, p)
	return err
}

// checkEmit validates a request and returns its event. Without a key the event gets a
// random one.
func (r *Registry) checkEmit(ctx context.Context, p *protocol.TriggerEmitParams) (e event, err error) {
	cwd, err := param.CheckWorkspace(p.Cwd)
	if err != nil {
		return e, err
	}
	for pointer, name := range map[string]string{"/sourceKey": p.SourceKey, "/occurrenceKey": p.OccurrenceKey} {
		if err := param.CheckName(pointer, name); err != nil {
			return e, err
		}
	}
	if watched(p.Type) {
		return e, param.Bad("/type", "%s events can only be emitted by lashd itself", p.Type)
	}
	declared, err := r.eventType(ctx, cwd, p.Type)
	if errors.Is(err, errNoEventType) {
		return e, param.Bad("/type", "%.100q %s", p.Type, err)
	}
	if err != nil {
		return e, err
	}
	e = event{typ: p.Type, sourceKey: p.SourceKey, key: cmp.Or(p.OccurrenceKey, uuid.NewString())}
	e.payload, err = checkPayload(p.Payload, declared.Payload)
	return e, err
}

// emit is Emit on the loop's goroutine.
func (l *loop) emit(ctx context.Context, e event, rc receipt.Request) (*protocol.TriggerEmitResult, error) {
	known, err := l.Store.Occurrence(ctx, e.id())
	switch {
	case err == nil && !bytes.Equal(known.Payload, e.payload):
		return nil, fmt.Errorf("an event with the key %s and a different payload %w; use another key", e.key, persistence.ErrExists)
	case err == nil:
		r := &protocol.TriggerEmitResult{Occurrence: known}
		r.MarkDuplicate()
		return r, nil
	case !isMissing(err):
		return nil, err
	}
	c := &persistence.Commit{AtMs: now()}
	o := l.occurrence(e, c.AtMs)
	r := &protocol.TriggerEmitResult{Occurrence: o.Occurrence}
	c.Receipt, c.Triggers.Occurred = rc.With(r), []persistence.Occurred{o}
	if err := l.commit(ctx, c); err != nil {
		return nil, err
	}
	l.out.add(o)
	return r, nil
}

// encode returns v as JSON. It panics on an error, because it encodes only lashd's own
// types.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return b
}
