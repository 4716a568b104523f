package engine

import (
	"context"
	"errors"
	"time"

	"lashd/engine/change"
	"lashd/engine/trace"
	"lashd/engine/undo"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// turnStore stores what a turn comes to while it goes on: each commit has all that the journal gathered. The goroutine of the turn, and
// those of its calls, wait for the session's actor meanwhile.
type turnStore struct {
	*session
	owner   *state // the state that started the turn
	turn    protocol.TurnID
	life    context.Context         // until the turn ends or is suspended
	halt    context.CancelCauseFunc // suspends the turn
	journal *journal
	files   *undo.Point // nil: undo is off
	trace   turnTrace
}

// left tells that the work on the turn ends, but not the turn: the daemon stops, or the session's state was given up. No error
// tells that, as plugins have errors of their own.
func (t *turnStore) suspended() bool { return t.life.Err() != nil }

// change begins a change of the running turn: first comes what the journal gathered and the log does not tell yet.
func (t *turnStore) change(st *state) *change.Change {
	c := st.change(persistence.Commit{Fence: persistence.Fence{Turn: t.turn, Incarnation: st.eng.incarnation}})
	t.journal.addTo(c)
	return c
}

// commit commits a change of the running turn, with what is new of its files. If that fails, the log still has to tell all of it.
func (t *turnStore) commit(ctx context.Context, st *state, c *change.Change) error {
	t.files.AddTo(c)
	return st.commit(ctx, c)
}

// flush commits what the journal gathered, with journal rows and events that concern nobody else.
func (t *turnStore) flush(ctx context.Context, rows []persistence.Effect, also ...change.Event) error {
	t.files.Join(false)
	return t.storeWhenSpace(ctx, func(ctx context.Context, st *state) error { return t.commitRows(ctx, st, rows, also) })
}

// keep is flush for rows that come again with a later commit if there is no space for them now.
func (t *turnStore) keep(rows ...persistence.Effect) error {
	_, err := onTurnState(t, func(ctx context.Context, st *state) (struct{}, error) {
		return struct{}{}, t.commitRows(ctx, st, rows, nil)
	})
	return err
}

func (t *turnStore) commitRows(ctx context.Context, st *state, rows []persistence.Effect, also []change.Event) error {
	c := t.change(st)
	c.Effects = append(c.Effects, rows...)
	c.Tell(also...)
	return t.commit(ctx, st, c)
}

// storeWhenSpace runs a function of the actor that stores something. While the store has no space for it, the turn waits here, until ctx is done.
func (t *turnStore) storeWhenSpace(ctx context.Context, f func(context.Context, *state) error) error {
	return retryUntilSpace(ctx, func() error {
		_, err := onTurnState(t, func(ctx context.Context, st *state) (struct{}, error) { return struct{}{}, f(ctx, st) })
		return err
	}, func(err error) {
		t.eng.Log.Error("cannot store the turn yet; retrying", "turn", t.turn, "error", err)
		t.trace.add(trace.StoreError, trace.Failure{Error: err.Error(), Waits: true})
	})
}

// retract withdraws what was shown of a reply that will be made again.
func (t *turnStore) retract() {
	t.feed.End(t.journal.streamed, true)
	t.journal.streamed = nil
}

// retryUntilSpace stores something, again while there is no space for it, until ctx is done. It calls waits before each wait.
func retryUntilSpace(ctx context.Context, store func() error, waits func(error)) error {
	for {
		err := store()
		if !noSpace(err) {
			return err
		}
		waits(err)
		if err := pause(ctx, spaceCheck); err != nil {
			return err
		}
	}
}

// spaceCheck is how often what found no space, or the database locked, is tried again.
const spaceCheck = time.Second

func noSpace(err error) bool {
	return errors.Is(err, persistence.ErrFull) || errors.Is(err, persistence.ErrBusy)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
