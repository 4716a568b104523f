package engine

import (
	"context"
	"lashd/engine/pluginstate"
	"slices"

	"lashd/engine/receipt"
	"lashd/rpc/protocol"
)

// sessionHolds is the queue of commands, compactions and tasks that each need a session to
// themselves. At most one holds the session, in the order of the requests. The type only keeps the
// order: sessionTurns.startNext decides when the next one may begin. It belongs to the actor.
type sessionHolds struct {
	// holder has the session; nil if none has.
	holder *sessionHold
	// waiting is in order of arrival.
	waiting []*sessionHold
}

// request adds a hold to the queue. The caller runs sessionTurns.startNext afterwards, unless a
// turn is running, and the requester waits with acquire or waitGranted.
func (h *sessionHolds) request(ctx context.Context, owner *state) *sessionHold {
	w := &sessionHold{ctx: ctx, owner: owner, ready: make(chan struct{})}
	h.waiting = append(h.waiting, w)
	return w
}

// held reports whether a hold has the session.
func (h *sessionHolds) held() bool { return h.holder != nil }

// awaited reports whether a hold waits for the session.
func (h *sessionHolds) awaited() bool { return len(h.waiting) > 0 }

// grant gives the session to the hold that has waited longest. There must be one, and no holder.
func (h *sessionHolds) grant() {
	h.holder, h.waiting = h.waiting[0], h.waiting[1:]
	close(h.holder.ready)
}

// remove removes a hold, whether it has the session or waits for it.
func (h *sessionHolds) remove(w *sessionHold) {
	if h.holder == w {
		h.holder = nil
	}
	h.waiting = slices.DeleteFunc(h.waiting, func(other *sessionHold) bool { return other == w })
}

// after returns the hold that a plugin requested at the end of a turn; nil if there is none.
func (h *sessionHolds) after(id protocol.TurnID) *sessionHold {
	for _, w := range append(slices.Clip(h.waiting), h.holder) {
		if w != nil && w.after == id {
			return w
		}
	}
	return nil
}

// sessionHold gives a command, a compaction or a task a session to itself. It waits for the running
// turn to end, and while it has the session no turn starts. The work runs off the actor; its result
// is committed on the actor, in the same step that releases the session.
//
// The actor creates a hold with sessionHolds.request and closes ready. All other fields belong to
// the goroutine that does the work, which must call release in any case.
type sessionHold struct {
	// ctx belongs to the requester. When it ends, the hold stops waiting.
	ctx   context.Context
	owner *state
	// ready is closed once the hold has the session.
	ready chan struct{}
	// lease has the session's plugins; acquire sets it.
	lease *lease
	// released is set once release has begun.
	released bool

	// after is the turn at whose end a plugin requested the hold; empty if a client or a task did.
	after protocol.TurnID
	// stop cancels ctx. It is set if after is.
	stop context.CancelCauseFunc
}

// hold waits until it has a session for a command, and returns the hold with a lease of the
// plugins. It calls check with a first lease before it waits, so that a request which makes no sense
// fails at once. The plugins may be replaced during the wait. admit, if not nil, runs on the actor
// and refuses requests that must not wait.
func (e *Engine) hold(ctx context.Context, id protocol.SessionID, check func(*lease) error, admit func(*state) error) (*sessionHold, error) {
	l, err := e.lend(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := check(l); err != nil {
		l.release()
		return nil, err
	}
	w, err := do(ctx, e, id, func(_ context.Context, st *state) (*sessionHold, error) {
		if admit != nil {
			if err := admit(st); err != nil {
				return nil, err
			}
		}
		w := st.holds.request(ctx, st)
		st.turns.startNext()
		return w, nil
	})
	l.release() // the plugins may be replaced before the session is granted
	if err != nil {
		return nil, err
	}
	if err := w.acquire(); err != nil {
		return nil, err
	}
	return w, nil
}

// noCheck is the check of requests that hold need not refuse.
func noCheck(*lease) error { return nil }

// acquire waits until the hold has the session, and leases its plugins. If it fails the hold is
// released.
func (w *sessionHold) acquire() error {
	err := w.waitGranted()
	if err == nil {
		w.lease, err = w.owner.plugins.lend(w.ctx, nil) // no other plugins replace these until the lease is back
	}
	if err != nil {
		w.release()
	}
	return err
}

// waitGranted waits until the hold has the session, for work that needs no plugins. After an error
// the caller must release the hold.
func (w *sessionHold) waitGranted() error {
	select {
	case <-w.ready:
		return nil
	case <-w.owner.closed:
		return ErrReloaded
	case <-w.ctx.Done():
		return context.Cause(w.ctx)
	}
}

// heldResult is the result of work during a hold, with the plugin state that was captured after it.
type heldResult[W any] struct {
	result   W
	captured *pluginstate.Captured
	// issues are failures of plugins to capture their state.
	issues []protocol.Issue
}

// withHeld runs work off the actor while w holds the session, captures the state of the plugins,
// and then runs settle on the actor to commit the result. It releases w in any case.
func withHeld[W, T any](w *sessionHold, work func(context.Context, *lease) (W, error), settle func(context.Context, *state, heldResult[W]) (T, error)) (v T, err error) {
	defer w.release()
	var done heldResult[W]
	if done.result, err = work(w.lease.ctx, w.lease); err != nil {
		return v, cancelledOr(w.lease.ctx, err)
	}
	done.captured, done.issues = w.lease.eng.captureAll(context.WithoutCancel(w.lease.ctx), w.lease.id, w.lease.plugins, w.owner.stored.pluginState())
	return release(w, func(ctx context.Context, st *state) (T, error) { return settle(ctx, st, done) })
}

// release releases the session, or the place in the queue. It does nothing if that has happened
// before.
func (w *sessionHold) release() {
	if !w.released {
		// An error means that the state was dropped, and the hold with it.
		_, _ = release(w, func(context.Context, *state) (struct{}, error) { return struct{}{}, nil })
	}
}

// release runs f on the actor and then releases the session. If the state was dropped, f does not
// run and release returns the state's refusal.
func release[T any](w *sessionHold, f func(context.Context, *state) (T, error)) (T, error) {
	w.released = true
	v, err := onState(w.owner, func(ctx context.Context, st *state) (v T, err error) {
		defer w.handOver()
		return f(ctx, st)
	})
	w.lease.release() // a state that is being dropped waits for it
	return v, err
}

// handOver runs on the actor and lets the next hold or turn begin.
func (w *sessionHold) handOver() {
	w.owner.holds.remove(w)
	w.lease.release()
	w.owner.eng.sessionIdle.Notify()
	w.owner.turns.startNext()
}

// cancel stops work that a plugin requested after a turn, once the request to interrupt that turn
// is committed.
func (w *sessionHold) cancel(ctx context.Context, evidence protocol.CancelEvidence, rc receipt.Request) (*protocol.TurnInterruptResult, error) {
	result := &protocol.TurnInterruptResult{Status: protocol.InterruptRequested, Seq: w.owner.row.Seq}
	if err := w.owner.storeReceipt(ctx, rc, result); err != nil {
		return nil, err
	}
	w.stop(&cancelled{evidence})
	return result, nil
}
