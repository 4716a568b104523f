package engine

import (
	"context"
	"errors"
	"slices"

	"lashd/engine/change"
	"lashd/engine/feed"
	"lashd/engine/receipt"
	"lashd/engine/trace"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// change begins a change of the session, with some rows of its commit. Only one change may be under
// way: commit fails if another one was committed since it began.
func (st *state) change(rows persistence.Commit) *change.Change { return change.New(st.base(), rows) }

// base returns the point in the session's log that a change builds on.
func (st *state) base() change.Base { return change.Base{Seq: st.row.Seq, Commits: st.commits} }

// commit stores a change, sends its events to subscribers, and then applies it to memory. It runs
// on the actor. It fences on the session's sequence number, so nothing is written if another daemon
// wrote since.
//
// After an error nothing in memory has changed. If the error leaves open whether the store has the
// change, the state is marked broken and the actor loads the session again.
func (st *state) commit(ctx context.Context, c *change.Change) error {
	err := c.Finish()
	if err == nil {
		err = st.store(ctx, c)
	}
	if err != nil {
		c.Drop()
	}
	return err
}

// store writes the change and applies it to memory. The wait for the database is never cut short: a
// cancelled wait would leave open whether the change is stored.
func (st *state) store(ctx context.Context, c *change.Change) error {
	st.stored.inherit(c, st.row.Head.Frame)
	before := st.row.Head.Leaf
	if err := c.Seal(st.row.ID, st.base(), now()); err != nil {
		st.broken = err
		return err
	}
	// Cancelling this wait would leave open whether the change is stored.
	res, err := st.eng.store.Commit(context.WithoutCancel(ctx), &c.Commit)
	if err == nil && res.Replayed {
		err = receipt.ErrReplayed
	}
	if err != nil {
		st.commitFailed(err)
		return err
	}
	st.commits++
	st.row.Head, st.row.Seq, st.row.UpdatedAtMs = res.Head, c.Seq(), c.AtMs
	completed, withdrawn := splitShown(c)
	st.feed.Publish(c.Wire(), st.row.Seq, completed, withdrawn)
	if c.Rewind == "" && c.Restore == "" {
		st.history.grow(before, res.Nodes)
	}
	c.Land(res)
	row := st.row
	st.newestRow.Store(&row)
	st.steered.Store(st.queue.Steered())
	if len(c.Decisions) > 0 {
		st.alarm.Set()
	}
	st.published.notifyParents(st.ctx, st.row.Relation, c.Told())
	return nil
}

// commitFailed marks the state broken, unless the error proves that nothing was stored.
func (st *state) commitFailed(err error) {
	for _, notStored := range []error{
		persistence.ErrFull, persistence.ErrBusy, persistence.ErrBudget, persistence.ErrInvalid, persistence.ErrReceiptConflict,
		persistence.ErrExists, persistence.ErrNotFound, persistence.ErrNotRetained, receipt.ErrReplayed,
	} {
		if errors.Is(err, notStored) {
			return
		}
	}
	if _, stale := errors.AsType[*persistence.StaleBranchError](err); stale {
		return
	}
	st.eng.Trace.Add(trace.StoreError, trace.Record{SessionID: st.id}, trace.Failure{Error: err.Error()})
	st.broken = err
}

// splitShown divides the open items of a change: completed ones have an event in the change, and
// withdrawn ones have none and disappear for subscribers.
func splitShown(c *change.Change) (completed, withdrawn []*feed.Item) {
	for _, item := range c.Shown {
		known := slices.ContainsFunc(c.Told(), func(e change.Event) bool {
			return e.Item != nil && e.ItemID == item.ID() && e.Item.Kind == item.Kind()
		})
		if known {
			completed = append(completed, item)
		} else {
			withdrawn = append(withdrawn, item)
		}
	}
	return completed, withdrawn
}

// commitEvents commits events that belong to no other change. It runs on the actor.
func (st *state) commitEvents(ctx context.Context, events ...change.Event) error {
	c := st.change(persistence.Commit{})
	c.Tell(events...)
	return st.commit(ctx, c)
}

// commitUnlessEmpty commits a change, unless it has no events, no components and no receipt. It
// ignores other rows, so use it only for changes that consist of these.
func (st *state) commitUnlessEmpty(ctx context.Context, c *change.Change) error {
	if len(c.Told())+len(c.Component) == 0 && c.Receipt == nil {
		return nil
	}
	return st.commit(ctx, c)
}

// storeReceipt commits the receipt of a request that changes nothing else. Without an idempotency
// key there is no receipt, and it does nothing.
func (st *state) storeReceipt(ctx context.Context, rc receipt.Request, result any) error {
	kept := rc.With(result)
	if kept == nil {
		return nil
	}
	return st.commit(ctx, st.change(persistence.Commit{Receipt: kept}))
}

// mutate runs a change of a session on its actor. If the request's idempotency key was seen before,
// it returns the first answer instead. Requests with the same key run one after the other, because
// the actor runs one function at a time, so a repetition waits for the first one.
//
// f gets the receipt to commit together with its change. params are part of the receipt: the same
// key with other params is an error.
func mutate[T any, P receipt.Result[T]](ctx context.Context, e *Engine, id protocol.SessionID, method, key string, params any,
	f func(context.Context, *state, receipt.Request) (*T, error),
) (*T, error) {
	rc, err := receipt.For(method, key, params)
	if err != nil {
		return nil, err
	}
	result, err := do(ctx, e, id, func(ctx context.Context, st *state) (*T, error) {
		if result, hit, err := receipt.Find[T, P](ctx, e.store, rc); hit || err != nil {
			return result, err
		}
		return f(ctx, st, rc)
	})
	return receipt.First[T, P](ctx, e.store, rc, result, err)
}

// Once answers a request that changes something outside the engine. If the request's key was seen
// before, it returns the first answer. Otherwise it runs f and stores the result as a receipt. At
// most one f runs for a key at a time. After a crash during f, a repetition runs f again, because
// no receipt was stored.
func Once[T any, P receipt.Result[T]](
	ctx context.Context, e *Engine, method string, params interface{ Key() string }, f func() (*T, error),
) (*T, error) {
	return receipt.Once[T, P](ctx, e.receipts, method, params.Key(), params, func(rc receipt.Request) (*T, error) {
		result, err := f()
		if err != nil || rc.Key == "" {
			return result, err
		}
		_, err = e.store.Commit(context.WithoutCancel(ctx), &persistence.Commit{Receipt: rc.With(result), AtMs: now()})
		return result, err
	})
}

// commitIn commits rows in a session that do not depend on its state.
func (e *Engine) commitIn(ctx context.Context, id protocol.SessionID, c persistence.Commit) error {
	_, err := do(ctx, e, id, func(ctx context.Context, st *state) (struct{}, error) {
		return struct{}{}, st.commit(ctx, st.change(c))
	})
	return err
}
