package engine

import (
	"context"
	"errors"
	"slices"

	"lashd/engine/change"
	"lashd/engine/feed"
	"lashd/persistence"
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
	st.inherit(c)
	before := st.row.Head.Leaf
	if err := c.Seal(st.row.ID, st.base(), now()); err != nil {
		st.broken = err
		return err
	}
	// Nothing cuts off the wait for it: nobody could tell then whether it is stored.
	res, err := st.eng.store.Commit(context.WithoutCancel(ctx), &c.Commit)
	if err == nil && res.Replayed {
		err = errReplayed
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
		st.grow(before, res.Nodes)
	}
	c.Land(res)
	st.notifyParents(c.Told())
	return nil
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

// tell makes events durable that belong to no other change.
func (st *state) tell(ctx context.Context, events ...change.Event) error {
	c := st.change(persistence.Commit{})
	c.Tell(events...)
	return st.commit(ctx, c)
}
