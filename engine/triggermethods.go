package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// TriggerMovedError means that a trigger is not the one, or not as, a request says.
type TriggerMovedError struct {
	Key      string
	Revision int64 // the current one
}

func (e *TriggerMovedError) Error() string {
	return fmt.Sprintf("trigger %s is another one, or of revision %d, by now; read it again", e.Key, e.Revision)
}

var errTooManyTriggers = fmt.Errorf("there are %d triggers already: %w", maxTriggers, persistence.ErrBudget)

// RegisterTrigger makes a trigger. One that is there already, just like that, is given as it is.
func (e *Engine) RegisterTrigger(ctx context.Context, p *protocol.TriggerRegisterParams) (*protocol.TriggerResult, error) {
	const method = "trigger/register"
	if err := checkKey(p.Key); err != nil {
		return nil, err
	}
	spec, seen, err := e.prepareTrigger(ctx, p.SessionID, p.TriggerSpec)
	if err != nil {
		return repeated[protocol.TriggerResult](ctx, e, method, p.IdempotencyKey, p, err)
	}
	return single(ctx, e, method, p.IdempotencyKey, p, func(rc receipt) (*protocol.TriggerResult, error) {
		return inTriggers(ctx, e, func(ctx context.Context, t *triggers) (*protocol.TriggerResult, error) {
			if w := t.find(p.SessionID, p.Key); w != nil {
				return w.again(spec)
			}
			at := now()
			w := &trigger{seen: seen, Trigger: persistence.Trigger{Row: t.last + 1, TickedMs: at, Trigger: protocol.Trigger{
				ID: protocol.NewTriggerID(), Key: p.Key, SessionID: p.SessionID, Revision: 1, Enabled: p.Enabled == nil || *p.Enabled,
				CreatedAtMs: at, UpdatedAtMs: at, TriggerSpec: spec,
			}}}
			if len(t.known) >= maxTriggers {
				return nil, errTooManyTriggers
			}
			return t.put(ctx, w, rc)
		})
	})
}

// prepareTrigger checks what is wanted of a trigger, and looks at its files as they are before it is at work.
func (e *Engine) prepareTrigger(ctx context.Context, owner protocol.SessionID, asked protocol.TriggerSpec) (protocol.TriggerSpec, fileStamps, error) {
	if owner != "" {
		if _, err := e.store.Session(ctx, owner); err != nil {
			return asked, nil, err
		}
	}
	spec, err := e.checkSpec(ctx, owner, asked)
	if err != nil || spec.Source.File == nil {
		return spec, nil, err
	}
	seen, err := e.firstLook(ctx, spec.Source.File)
	return spec, seen, err
}

// again is the answer to who registers what is registered.
func (w *trigger) again(spec protocol.TriggerSpec) (*protocol.TriggerResult, error) {
	if !bytes.Equal(encode(w.TriggerSpec), encode(spec)) {
		return nil, fmt.Errorf("trigger %s is something else: %w; update it, or delete it first", w.Key, persistence.ErrExists)
	}
	r := &protocol.TriggerResult{Trigger: w.public()}
	r.MarkDuplicate()
	return r, nil
}

// put stores a trigger, and takes it to work in place of what it was.
func (t *triggers) put(ctx context.Context, w *trigger, rc receipt) (*protocol.TriggerResult, error) {
	if err := w.equip(time.Now()); err != nil {
		return nil, err
	}
	w.plan(time.Now())
	r := &protocol.TriggerResult{Trigger: w.public()}
	c := &persistence.Commit{AtMs: w.UpdatedAtMs, Receipt: rc.with(r), Triggers: persistence.TriggerChange{Put: []persistence.Trigger{w.Trigger}}}
	if err := t.commit(ctx, c); err != nil {
		return nil, err
	}
	t.adopt(w)
	t.eng.postTrigger(r.Trigger)
	return r, nil
}

// which is the trigger that a request names, if it is still as that says.
func (t *triggers) which(owner protocol.SessionID, key string, id protocol.TriggerID, revision int64) (*trigger, error) {
	w := t.find(owner, key)
	switch {
	case w == nil:
		return nil, &persistence.NotFoundError{What: "trigger", ID: key}
	case id != "" && id != w.ID, revision != 0 && revision != w.Revision:
		return nil, &TriggerMovedError{Key: key, Revision: w.Revision}
	}
	return w, nil
}

// UpdateTrigger changes a trigger.
func (e *Engine) UpdateTrigger(ctx context.Context, p *protocol.TriggerUpdateParams) (*protocol.TriggerResult, error) {
	if err := checkKey(p.Key); err != nil {
		return nil, err
	}
	return single(ctx, e, "trigger/update", p.IdempotencyKey, p, func(rc receipt) (*protocol.TriggerResult, error) {
		for {
			r, err := e.updateTrigger(ctx, p, rc)
			if !errors.Is(err, errUpdatedMeanwhile) {
				return r, err
			}
		}
	})
}

// errUpdatedMeanwhile means that what was checked is not what there is.
var errUpdatedMeanwhile = errors.New("the trigger was updated meanwhile")

func (e *Engine) updateTrigger(ctx context.Context, p *protocol.TriggerUpdateParams, rc receipt) (*protocol.TriggerResult, error) {
	before, err := inTriggers(ctx, e, func(_ context.Context, t *triggers) (persistence.Trigger, error) {
		w, err := t.which(p.SessionID, p.Key, p.TriggerID, p.Revision)
		if err != nil {
			return persistence.Trigger{}, err
		}
		return w.Trigger, nil
	})
	if err != nil {
		return nil, err
	}
	next, seen, err := e.updated(ctx, before, p)
	if err != nil {
		return nil, err
	}
	return inTriggers(ctx, e, func(ctx context.Context, t *triggers) (*protocol.TriggerResult, error) {
		w, err := t.which(p.SessionID, p.Key, p.TriggerID, p.Revision)
		switch {
		case err != nil:
			return nil, err
		case w.ID != before.ID || w.Revision != before.Revision:
			return nil, errUpdatedMeanwhile
		}
		return t.put(ctx, &trigger{Trigger: next, seen: seen}, rc)
	})
}

// updated is a trigger as a request wants it.
func (e *Engine) updated(ctx context.Context, w persistence.Trigger, p *protocol.TriggerUpdateParams) (persistence.Trigger, fileStamps, error) {
	if p.Source != nil {
		w.Source = *p.Source
	}
	if p.Filter != nil {
		w.Filter = p.Filter
	}
	if p.Action != nil {
		w.Action = *p.Action
	}
	if p.Enabled != nil {
		w.Enabled = *p.Enabled
	}
	w.Problem, w.UpdatedAtMs = "", now()
	w.Revision, w.TickedMs = w.Revision+1, w.UpdatedAtMs
	if p.Source == nil && p.Filter == nil && p.Action == nil && !w.Enabled { // whatever is wrong with it, it can be switched off
		return w, nil, nil
	}
	spec, seen, err := e.prepareTrigger(ctx, w.SessionID, w.TriggerSpec)
	w.TriggerSpec = spec
	return w, seen, err
}

// DeleteTrigger ends a trigger. What has occurred before is still delivered.
func (e *Engine) DeleteTrigger(ctx context.Context, p *protocol.TriggerDeleteParams) (*protocol.TriggerResult, error) {
	if err := checkKey(p.Key); err != nil {
		return nil, err
	}
	return single(ctx, e, "trigger/delete", p.IdempotencyKey, p, func(rc receipt) (*protocol.TriggerResult, error) {
		return inTriggers(ctx, e, func(ctx context.Context, t *triggers) (*protocol.TriggerResult, error) {
			w, err := t.which(p.SessionID, p.Key, p.TriggerID, p.Revision)
			if err != nil {
				return nil, err
			}
			r := &protocol.TriggerResult{Trigger: w.public()}
			c := &persistence.Commit{AtMs: now(), Receipt: rc.with(r), Triggers: persistence.TriggerChange{Delete: []protocol.TriggerID{w.ID}}}
			if err := t.commit(ctx, c); err != nil {
				return nil, err
			}
			t.drop(func(o *trigger) bool { return o == w })
			e.postTriggerGone(r.Trigger)
			return r, nil
		})
	})
}

// forgetTriggers drops the triggers of a session that is deleted; the store has done so already.
func (e *Engine) forgetTriggers(ctx context.Context, id protocol.SessionID) {
	_, err := inTriggers(ctx, e, func(ctx context.Context, t *triggers) (struct{}, error) {
		t.drop(func(w *trigger) bool { return w.SessionID == id })
		return struct{}{}, nil
	})
	if err != nil && !errors.Is(err, ErrShuttingDown) { // what is left finds out when it is next due
		e.Log.Debug("triggers of a deleted session stay for now", "session", id, "error", err)
	}
}

const triggerPages, occurrencePages = "g", "o"

// Triggers lists triggers.
func (e *Engine) Triggers(ctx context.Context, p *protocol.TriggerListParams) (*protocol.TriggerListResult, error) {
	at, err := parseCursor(p.Cursor, triggerPages, 1)
	if err != nil {
		return nil, err
	}
	limit, err := pageSize(p.Limit, 50, 200)
	if err != nil {
		return nil, err
	}
	return inTriggers(ctx, e, func(_ context.Context, t *triggers) (*protocol.TriggerListResult, error) {
		r := &protocol.TriggerListResult{Data: []protocol.Trigger{}}
		last := int64(0)
		for _, w := range t.inOrder() {
			if w.Row <= at[0] || p.SessionID != "" && p.SessionID != w.SessionID {
				continue
			}
			if len(r.Data) == limit {
				r.NextCursor = cursor(triggerPages, last)
				break
			}
			r.Data, last = append(r.Data, w.public()), w.Row
		}
		return r, nil
	})
}

// TriggerHistory lists what happened, and what has come of it.
func (e *Engine) TriggerHistory(ctx context.Context, p *protocol.TriggerHistoryParams) (*protocol.TriggerHistoryResult, error) {
	at, err := parseCursor(p.Cursor, occurrencePages, 1)
	if err != nil {
		return nil, err
	}
	limit, err := pageSize(p.Limit, 20, 100)
	if err != nil {
		return nil, err
	}
	rows, err := e.store.Occurrences(ctx, persistence.OccurrenceQuery{Trigger: p.TriggerID, Type: p.Type, Before: at[0], Limit: limit})
	if err != nil {
		return nil, err
	}
	r := &protocol.TriggerHistoryResult{Data: []protocol.Occurrence{}}
	for _, o := range rows {
		r.Data = append(r.Data, o.Occurrence)
	}
	if len(rows) == limit {
		r.NextCursor = cursor(occurrencePages, rows[limit-1].Row)
	}
	return r, nil
}
