package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// EmitTrigger tells that something has happened. When it returns that is durable, and so is what it is to bring about.
func (e *Engine) EmitTrigger(ctx context.Context, p *protocol.TriggerEmitParams) (*protocol.TriggerEmitResult, error) {
	const method = "trigger/emit"
	h, err := e.checkEmit(ctx, p)
	if err != nil {
		return repeated[protocol.TriggerEmitResult](ctx, e, method, p.IdempotencyKey, p, err)
	}
	return single(ctx, e, method, p.IdempotencyKey, p, func(rc receipt) (*protocol.TriggerEmitResult, error) {
		return inTriggers(ctx, e, func(ctx context.Context, t *triggers) (*protocol.TriggerEmitResult, error) { return t.emit(ctx, h, rc) })
	})
}

func (e *Engine) checkEmit(ctx context.Context, p *protocol.TriggerEmitParams) (h happening, err error) {
	if err := CheckWorkspace(p.Cwd); err != nil {
		return h, err
	}
	for pointer, name := range map[string]string{"/sourceKey": p.SourceKey, "/occurrenceKey": p.OccurrenceKey} {
		if err := checkName(pointer, name); err != nil {
			return h, err
		}
	}
	if watched(p.Type) {
		return h, bad("/type", "%s is something that only lashd itself tells", p.Type)
	}
	ev, err := e.eventType(ctx, p.Cwd, p.Type)
	if errors.Is(err, errNoEventType) {
		return h, bad("/type", "%.100q %s", p.Type, err)
	}
	if err != nil {
		return h, err
	}
	h = happening{typ: p.Type, sourceKey: p.SourceKey, key: p.OccurrenceKey}
	if h.key == "" {
		h.key = uuid.NewString()
	}
	h.payload, err = happeningPayload(p.Payload, ev.Payload)
	return h, err
}

func (t *triggers) emit(ctx context.Context, h happening, rc receipt) (*protocol.TriggerEmitResult, error) {
	known, err := t.eng.store.Occurrence(ctx, h.id())
	switch {
	case err == nil && !bytes.Equal(known.Payload, h.payload):
		return nil, fmt.Errorf("occurrence %s, with another payload: %w", h.key, persistence.ErrExists)
	case err == nil:
		r := &protocol.TriggerEmitResult{Occurrence: known}
		r.MarkDuplicate()
		return r, nil
	case !isMissing(err):
		return nil, err
	}
	c := &persistence.Commit{AtMs: now()}
	o := t.occurred(h, c.AtMs)
	r := &protocol.TriggerEmitResult{Occurrence: o.Occurrence}
	c.Receipt, c.Triggers.Occurred = rc.with(r), []persistence.Occurred{o}
	if err := t.commit(ctx, c); err != nil {
		return nil, err
	}
	t.out.add(o)
	return r, nil
}
