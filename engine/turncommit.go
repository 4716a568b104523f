package engine

import (
	"context"
	"errors"
	"lashd/engine/pluginstate"
	"time"

	"lashd/engine/change"
	"lashd/engine/trace"
	"lashd/engine/undo"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// turnStore stores the progress of a running turn. Each commit also writes everything that the
// journal has gathered since the last. The goroutines of the turn and of its calls use it; each
// waits while the session's actor commits. Every commit is fenced with the turn and this daemon's
// incarnation, so a turn that another daemon took over cannot write.
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

// suspended reports whether the turn stops here and continues later, because the daemon stops or the
// session's state was unloaded. Callers ask it instead of examining an error, because an error of a
// plugin can wrap any cause.
func (t *turnStore) suspended() bool { return t.life.Err() != nil }

// change begins a change of the running turn. The change starts with the journal's rows, usage and
// events that are not committed yet.
func (t *turnStore) change(st *state) *change.Change {
	c := st.change(persistence.Commit{Fence: persistence.Fence{Turn: t.turn, Incarnation: st.eng.incarnation}})
	t.journal.addTo(c)
	t.journal.audits.AddTo(c)
	return c
}

// commit commits a change of the running turn with new changes of files. After an error the journal
// keeps its part for the next commit.
func (t *turnStore) commit(ctx context.Context, st *state, c *change.Change) error {
	t.files.AddTo(c)
	return st.commit(ctx, c)
}

// flush commits what the journal gathered, with more journal rows and events. It waits for a
// running scan of files, and for space in the store until ctx is done. When it returns nil,
// everything that the turn did before is durable.
func (t *turnStore) flush(ctx context.Context, rows []persistence.Effect, also ...change.Event) error {
	t.files.Join(false)
	return t.storeWhenSpace(ctx, func(ctx context.Context, st *state) error { return t.commitRows(ctx, st, rows, also) })
}

// flushState is flush with captured state of the code executor, which may be nil. The globals that a
// cell changed become durable together with its result.
func (t *turnStore) flushState(ctx context.Context, k *pluginstate.Captured) error {
	t.files.Join(false)
	return t.storeWhenSpace(ctx, func(ctx context.Context, st *state) error {
		c := t.change(st)
		st.stored.keep(c, k)
		return t.commit(ctx, st, c)
	})
}

// keep commits rows like flush, but does not wait for a scan of files or for space. Use it for rows
// that a later commit writes again if this one fails.
func (t *turnStore) keep(rows ...persistence.Effect) error {
	_, err := onTurnState(t, func(ctx context.Context, st *state) (struct{}, error) {
		return struct{}{}, t.commitRows(ctx, st, rows, nil)
	})
	return err
}

// commitRows commits journal rows and events, on the actor.
func (t *turnStore) commitRows(ctx context.Context, st *state, rows []persistence.Effect, also []change.Event) error {
	c := t.change(st)
	c.Effects = append(c.Effects, rows...)
	c.Tell(also...)
	return t.commit(ctx, st, c)
}

// storeWhenSpace runs a function on the actor that stores something. While the store has no space,
// the turn waits here and retries until ctx is done.
func (t *turnStore) storeWhenSpace(ctx context.Context, f func(context.Context, *state) error) error {
	return retryUntilSpace(ctx, func() error {
		_, err := onTurnState(t, func(ctx context.Context, st *state) (struct{}, error) { return struct{}{}, f(ctx, st) })
		return err
	}, func(err error) {
		t.eng.Log.Error("cannot store the turn yet; retrying", "turn", t.turn, "error", err)
		t.trace.add(trace.StoreError, trace.Failure{Error: err.Error(), Waits: true})
	})
}

// retract tells clients to discard the streamed items of an unfinished reply. A later run of the turn
// requests the reply again.
func (t *turnStore) retract() {
	t.feed.End(t.journal.streamed, true)
	t.journal.streamed = nil
}

// retryUntilSpace calls store until it returns something other than a lack of space, or until ctx
// is done. Before each wait of spaceCheck it calls waits with the error.
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

// spaceCheck is the interval at which a commit is retried that found no space or a locked database.
const spaceCheck = time.Second

// noSpace reports whether a commit failed only because the disk is full or the database is locked.
func noSpace(err error) bool {
	return errors.Is(err, persistence.ErrFull) || errors.Is(err, persistence.ErrBusy)
}

// pause waits for d. If ctx ends first, it returns the cause.
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
