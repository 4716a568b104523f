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

// active is a trigger in memory.
type active struct {
	persistence.Trigger
	schedule *schedule.Schedule // of cron.tick
	since    time.Time          // up to which its schedule was handled
	next     time.Time          // when it is due
	glob     glob.Glob          // of file.changed
	files    fileStamps         // as of the last scan; nil: there was none
	problem  string             // with its files
}

// parseSource parses the schedule or the glob of a trigger.
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

// public returns the trigger as clients see it.
func (a *active) public() protocol.Trigger {
	t := a.Trigger.Trigger
	t.Problem = cmp.Or(t.Problem, a.problem)
	if !a.next.IsZero() {
		t.NextAtMs = a.next.UnixMilli()
	}
	return t
}

// target returns the session that an occurrence is delivered to.
func (a *active) target(id protocol.OccurrenceID) protocol.SessionID {
	if a.Action.Kind == protocol.TriggerStarts {
		return protocol.DeriveSessionID("trigger", string(a.ID), string(id))
	}
	return cmp.Or(a.Action.SessionID, a.SessionID)
}

// event is what has occurred, before it is recorded.
type event struct {
	typ, sourceKey, key string
	payload             json.RawMessage
	only                *active // the only trigger that it concerns; nil: all that match
}

func (e event) id() protocol.OccurrenceID {
	return protocol.DeriveOccurrenceID(e.typ, e.sourceKey, e.key)
}

func (a *active) matches(e event) bool {
	switch {
	case !a.Enabled || a.Source.Type != e.typ, e.only != nil && e.only != a:
		return false
	case e.only == nil && a.Source.Key != "" && a.Source.Key != e.sourceKey:
		return false
	}
	return tool.CheckValue(a.Filter, e.payload) == nil
}

// occurrence makes the row of an event, with a delivery reserved for each trigger that matches it.
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

// record stores a commit with the occurrences of events that are not known yet. Then their deliveries are made.
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

// Emit records an event that a client or a plugin reports. When it returns, the occurrence and its deliveries are durable.
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

// CheckEmit returns the error with which Emit would refuse an event.
func (r *Registry) CheckEmit(ctx context.Context, p *protocol.TriggerEmitParams) error {
	_, err := r.checkEmit(ctx, p)
	return err
}

func (r *Registry) checkEmit(ctx context.Context, p *protocol.TriggerEmitParams) (e event, err error) {
	if err := param.CheckWorkspace(p.Cwd); err != nil {
		return e, err
	}
	for pointer, name := range map[string]string{"/sourceKey": p.SourceKey, "/occurrenceKey": p.OccurrenceKey} {
		if err := param.CheckName(pointer, name); err != nil {
			return e, err
		}
	}
	if watched(p.Type) {
		return e, param.Bad("/type", "%s is something that only lashd itself tells", p.Type)
	}
	declared, err := r.eventType(ctx, p.Cwd, p.Type)
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

func (l *loop) emit(ctx context.Context, e event, rc receipt.Request) (*protocol.TriggerEmitResult, error) {
	known, err := l.Store.Occurrence(ctx, e.id())
	switch {
	case err == nil && !bytes.Equal(known.Payload, e.payload):
		return nil, fmt.Errorf("occurrence %s, with another payload: %w", e.key, persistence.ErrExists)
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

// encode panics if one of our own types cannot be encoded.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return b
}
