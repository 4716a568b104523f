package trigger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// MovedError means that a trigger was replaced or updated since the caller read it. The
// caller reads it again and repeats the request.
type MovedError struct {
	Key string
	// Revision is the current revision.
	Revision int64
}

func (e *MovedError) Error() string {
	return fmt.Sprintf("trigger %s was replaced or updated (revision is now %d); read it again", e.Key, e.Revision)
}

// errFull means that there are maxTriggers triggers.
var errFull = fmt.Errorf("cannot create more than %d triggers: %w", maxTriggers, persistence.ErrBudget)

// Register creates a trigger. If the owner already has a trigger with that key and the same
// spec, Register returns that one, marked as a duplicate. With another spec it returns
// persistence.ErrExists; use Update to change a trigger.
func (r *Registry) Register(ctx context.Context, p *protocol.TriggerRegisterParams) (*protocol.TriggerResult, error) {
	const method = "trigger/register"
	if err := checkKey(p.Key); err != nil {
		return nil, err
	}
	spec, files, err := r.prepare(ctx, p.SessionID, p.TriggerSpec)
	if err != nil {
		return receipt.Repeated[protocol.TriggerResult](ctx, r.Store, method, p.IdempotencyKey, p, err)
	}
	return receipt.Once(ctx, r.Receipts, method, p.IdempotencyKey, p, func(rc receipt.Request) (*protocol.TriggerResult, error) {
		return on(ctx, r, func(ctx context.Context, l *loop) (*protocol.TriggerResult, error) {
			return l.register(ctx, p, spec, files, rc)
		})
	})
}

// register is Register on the loop's goroutine, with a checked spec.
func (l *loop) register(
	ctx context.Context, p *protocol.TriggerRegisterParams, spec protocol.TriggerSpec, files fileStamps, rc receipt.Request,
) (*protocol.TriggerResult, error) {
	if a := l.find(p.SessionID, p.Key); a != nil {
		return a.registered(spec)
	}
	if len(l.triggers) >= maxTriggers {
		return nil, errFull
	}
	at := now()
	return l.put(ctx, &active{files: files, Trigger: persistence.Trigger{Row: l.last + 1, TickedMs: at, Trigger: protocol.Trigger{
		ID: protocol.NewTriggerID(), Key: p.Key, SessionID: p.SessionID, Revision: 1, Enabled: p.Enabled == nil || *p.Enabled,
		CreatedAtMs: at, UpdatedAtMs: at, TriggerSpec: spec,
	}}}, rc)
}

// prepare checks a spec outside the loop's goroutine. For a file trigger it also returns
// the files as they are now. They become the base of its first scan, so that changes made
// after the request are noticed.
func (r *Registry) prepare(ctx context.Context, owner protocol.SessionID, asked protocol.TriggerSpec) (protocol.TriggerSpec, fileStamps, error) {
	if owner != "" {
		if _, err := r.Store.Session(ctx, owner); err != nil {
			return asked, nil, err
		}
	}
	spec, err := r.checkSpec(ctx, owner, asked)
	if err != nil || spec.Source.File == nil {
		return spec, nil, err
	}
	files, err := r.currentFiles(ctx, spec.Source.File)
	return spec, files, err
}

// registered returns an existing trigger as the answer to a repeated registration, if the
// specs are equal.
func (a *active) registered(spec protocol.TriggerSpec) (*protocol.TriggerResult, error) {
	if !bytes.Equal(encode(a.TriggerSpec), encode(spec)) {
		return nil, fmt.Errorf("trigger %s %w with another definition; update or remove it first", a.Key, persistence.ErrExists)
	}
	r := &protocol.TriggerResult{Trigger: a.public()}
	r.MarkDuplicate()
	return r, nil
}

// put stores a trigger and activates it in place of its earlier revision.
func (l *loop) put(ctx context.Context, a *active, rc receipt.Request) (*protocol.TriggerResult, error) {
	if err := a.parseSource(time.Now()); err != nil {
		return nil, err
	}
	a.plan(time.Now())
	r := &protocol.TriggerResult{Trigger: a.public()}
	c := &persistence.Commit{AtMs: a.UpdatedAtMs, Receipt: rc.With(r), Triggers: persistence.TriggerChange{Put: []persistence.Trigger{a.Trigger}}}
	if err := l.commit(ctx, c); err != nil {
		return nil, err
	}
	l.activate(a)
	l.postChanged(r.Trigger)
	return r, nil
}

// current returns the trigger that a request names. It returns a MovedError if the request
// gives an id or a revision that is no longer current.
func (l *loop) current(owner protocol.SessionID, key string, id protocol.TriggerID, revision int64) (*active, error) {
	a := l.find(owner, key)
	switch {
	case a == nil:
		return nil, &persistence.NotFoundError{What: "trigger", ID: key}
	case id != "" && id != a.ID, revision != 0 && revision != a.Revision:
		return nil, &MovedError{Key: key, Revision: a.Revision}
	}
	return a, nil
}

// Update changes the given fields of a trigger and returns the result. It checks the new
// spec without blocking the loop, and repeats the check if the trigger changes in between.
// A revision in the request makes Update fail with a MovedError instead.
func (r *Registry) Update(ctx context.Context, p *protocol.TriggerUpdateParams) (*protocol.TriggerResult, error) {
	if err := checkKey(p.Key); err != nil {
		return nil, err
	}
	return receipt.Once(ctx, r.Receipts, "trigger/update", p.IdempotencyKey, p, func(rc receipt.Request) (*protocol.TriggerResult, error) {
		for {
			result, err := r.update(ctx, p, rc)
			if !errors.Is(err, errConcurrentUpdate) {
				return result, err
			}
		}
	})
}

// errConcurrentUpdate means that another update was stored after this one was checked.
var errConcurrentUpdate = errors.New("another request updated the trigger at the same time")

// update makes one attempt of Update.
func (r *Registry) update(ctx context.Context, p *protocol.TriggerUpdateParams, rc receipt.Request) (*protocol.TriggerResult, error) {
	before, err := on(ctx, r, func(_ context.Context, l *loop) (persistence.Trigger, error) {
		a, err := l.current(p.SessionID, p.Key, p.TriggerID, p.Revision)
		if err != nil {
			return persistence.Trigger{}, err
		}
		return a.Trigger, nil
	})
	if err != nil {
		return nil, err
	}
	next, files, err := r.updated(ctx, before, p)
	if err != nil {
		return nil, err
	}
	return on(ctx, r, func(ctx context.Context, l *loop) (*protocol.TriggerResult, error) {
		a, err := l.current(p.SessionID, p.Key, p.TriggerID, p.Revision)
		switch {
		case err != nil:
			return nil, err
		case a.ID != before.ID || a.Revision != before.Revision:
			return nil, errConcurrentUpdate
		}
		return l.put(ctx, &active{Trigger: next, files: files}, rc)
	})
}

// updated returns a trigger with the changes of a request applied and checked. Disabling
// needs no check, so that an invalid trigger can still be disabled.
func (r *Registry) updated(ctx context.Context, a persistence.Trigger, p *protocol.TriggerUpdateParams) (persistence.Trigger, fileStamps, error) {
	if p.Source != nil {
		a.Source = *p.Source
	}
	if p.Filter != nil {
		a.Filter = p.Filter
	}
	if p.Action != nil {
		a.Action = *p.Action
	}
	if p.Enabled != nil {
		a.Enabled = *p.Enabled
	}
	a.Problem, a.UpdatedAtMs = "", now()
	a.Revision, a.TickedMs = a.Revision+1, a.UpdatedAtMs
	if p.Source == nil && p.Filter == nil && p.Action == nil && !a.Enabled { // a trigger that is no longer valid can still be disabled
		return a, nil, nil
	}
	spec, files, err := r.prepare(ctx, a.SessionID, a.TriggerSpec)
	a.TriggerSpec = spec
	return a, files, err
}

// Delete deletes a trigger. Occurrences that are already recorded are still delivered.
func (r *Registry) Delete(ctx context.Context, p *protocol.TriggerDeleteParams) (*protocol.TriggerResult, error) {
	if err := checkKey(p.Key); err != nil {
		return nil, err
	}
	return receipt.Once(ctx, r.Receipts, "trigger/delete", p.IdempotencyKey, p, func(rc receipt.Request) (*protocol.TriggerResult, error) {
		return on(ctx, r, func(ctx context.Context, l *loop) (*protocol.TriggerResult, error) { return l.delete(ctx, p, rc) })
	})
}

// delete is Delete on the loop's goroutine.
func (l *loop) delete(ctx context.Context, p *protocol.TriggerDeleteParams, rc receipt.Request) (*protocol.TriggerResult, error) {
	a, err := l.current(p.SessionID, p.Key, p.TriggerID, p.Revision)
	if err != nil {
		return nil, err
	}
	r := &protocol.TriggerResult{Trigger: a.public()}
	c := &persistence.Commit{AtMs: now(), Receipt: rc.With(r), Triggers: persistence.TriggerChange{Delete: []protocol.TriggerID{a.ID}}}
	if err := l.commit(ctx, c); err != nil {
		return nil, err
	}
	l.remove(func(o *active) bool { return o == a })
	l.postDeleted(r.Trigger)
	return r, nil
}

// Kinds of cursors, see param.Cursor.
const triggerPages, occurrencePages = "g", "o"

// List lists triggers, oldest first. The cursor is the row of the last trigger, so pages
// stay stable while triggers are created and deleted.
func (r *Registry) List(ctx context.Context, p *protocol.TriggerListParams) (*protocol.TriggerListResult, error) {
	at, err := param.ParseCursor(p.Cursor, triggerPages, 1)
	if err != nil {
		return nil, err
	}
	limit, err := param.PageSize(p.Limit, 50, 200)
	if err != nil {
		return nil, err
	}
	return on(ctx, r, func(_ context.Context, l *loop) (*protocol.TriggerListResult, error) {
		return l.list(p.SessionID, at[0], limit), nil
	})
}

// list returns a page of the triggers after a row. An empty owner selects all.
func (l *loop) list(owner protocol.SessionID, after int64, limit int) *protocol.TriggerListResult {
	r := &protocol.TriggerListResult{Data: []protocol.Trigger{}}
	last := int64(0)
	for _, a := range l.inOrder() {
		if a.Row <= after || owner != "" && owner != a.SessionID {
			continue
		}
		if len(r.Data) == limit {
			r.NextCursor = param.Cursor(triggerPages, last)
			break
		}
		r.Data, last = append(r.Data, a.public()), a.Row
	}
	return r
}

// History lists occurrences with their deliveries, newest first.
func (r *Registry) History(ctx context.Context, p *protocol.TriggerHistoryParams) (*protocol.TriggerHistoryResult, error) {
	at, err := param.ParseCursor(p.Cursor, occurrencePages, 1)
	if err != nil {
		return nil, err
	}
	limit, err := param.PageSize(p.Limit, 20, 100)
	if err != nil {
		return nil, err
	}
	rows, err := r.Store.Occurrences(ctx, persistence.OccurrenceQuery{Trigger: p.TriggerID, Type: p.Type, Before: at[0], Limit: limit})
	if err != nil {
		return nil, err
	}
	result := &protocol.TriggerHistoryResult{Data: []protocol.Occurrence{}}
	for _, o := range rows {
		result.Data = append(result.Data, o.Occurrence)
	}
	if len(rows) == limit {
		result.NextCursor = param.Cursor(occurrencePages, rows[limit-1].Row)
	}
	return result, nil
}
