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

// change begins a change of the session with some rows of its commit. Nothing else may be committed before it.
func (st *state) change(rows persistence.Commit) *change.Change { return change.New(st.base(), rows) }

func (st *state) base() change.Base { return change.Base{Seq: st.row.Seq, Commits: st.commits} }

// commit makes a change durable, sends its events to subscribers, and has memory follow. It fences on the seq, so that nothing is
// written if another daemon wrote meanwhile. After an error nothing in memory has changed. If the error leaves open what the store
// holds, the session is loaded again.
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

func (st *state) store(ctx context.Context, c *change.Change) error {
	st.stored.inherit(c, st.row.Head.Frame)
	before := st.row.Head.Leaf
	if err := c.Seal(st.row.ID, st.base(), now()); err != nil {
		st.broken = err
		return err
	}
	// Nothing cuts off the wait for it: nobody could tell then whether it is stored.
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
		st.alarm.set()
	}
	st.published.notifyParents(st.ctx, st.row.Relation, c.Told())
	return nil
}

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

// splitShown sorts the open items of a change into those that its events complete, and the others.
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

// commitEvents makes events durable that belong to no other change.
func (st *state) commitEvents(ctx context.Context, events ...change.Event) error {
	c := st.change(persistence.Commit{})
	c.Tell(events...)
	return st.commit(ctx, c)
}

// commitUnlessEmpty commits a change that may have no event, component or receipt: then there is nothing to commit.
func (st *state) commitUnlessEmpty(ctx context.Context, c *change.Change) error {
	if len(c.Told())+len(c.Component) == 0 && c.Receipt == nil {
		return nil
	}
	return st.commit(ctx, c)
}

// storeReceipt makes the receipt of a request durable that stores nothing else.
func (st *state) storeReceipt(ctx context.Context, rc receipt.Request, result any) error {
	kept := rc.With(result)
	if kept == nil {
		return nil
	}
	return st.commit(ctx, st.change(persistence.Commit{Receipt: kept}))
}

// mutate runs a change of a session on its actor, unless its key was seen before: then the first answer is given again.
// A repetition that comes while the first is still in progress waits for it, because the actor does one at a time.
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

// Once answers a request that changes what is not the engine's: with the first answer, if its key was seen before, and else with
// what f comes to, which is remembered. It runs one f of a key at a time. After a crash f may be run once more with the same key,
// unless it was answered.
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

// commitIn makes a change durable in a session that follows from no state of it.
func (e *Engine) commitIn(ctx context.Context, id protocol.SessionID, c persistence.Commit) error {
	_, err := do(ctx, e, id, func(ctx context.Context, st *state) (struct{}, error) {
		return struct{}{}, st.commit(ctx, st.change(c))
	})
	return err
}
