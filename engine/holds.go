package engine

import (
	"context"
	"slices"

	"lashd/engine/plugin"
	"lashd/engine/receipt"
	"lashd/rpc/protocol"
)

// sessionHolds decides which command or task has a session to itself: at most one, in the order of their requests. It only keeps the
// order; the session decides when the next one may begin.
type sessionHolds struct {
	holder  *sessionHold   // has the session; nil: none has
	waiting []*sessionHold // in order of arrival
}

// request has a command wait for a session.
func (h *sessionHolds) request(ctx context.Context, owner *state) *sessionHold {
	w := &sessionHold{ctx: ctx, owner: owner, ready: make(chan struct{})}
	h.waiting = append(h.waiting, w)
	return w
}

// held reports whether a command has the session.
func (h *sessionHolds) held() bool { return h.holder != nil }

// awaited reports whether a command waits for the session.
func (h *sessionHolds) awaited() bool { return len(h.waiting) > 0 }

// grant gives a session that is not held to the command that has waited longest.
func (h *sessionHolds) grant() {
	h.holder, h.waiting = h.waiting[0], h.waiting[1:]
	close(h.holder.ready)
}

// remove forgets a command that has the session, or waits for it.
func (h *sessionHolds) remove(w *sessionHold) {
	if h.holder == w {
		h.holder = nil
	}
	h.waiting = slices.DeleteFunc(h.waiting, func(other *sessionHold) bool { return other == w })
}

// after is the command that a plugin wants after a turn; nil: none.
func (h *sessionHolds) after(id protocol.TurnID) *sessionHold {
	for _, w := range append(slices.Clip(h.waiting), h.holder) {
		if w != nil && w.after == id {
			return w
		}
	}
	return nil
}

// sessionHold is a command or a task that holds a session while it runs: it waits for the running turn to end, and no turn starts
// meanwhile. What it comes to is committed on the actor before it lets go.
type sessionHold struct {
	ctx      context.Context // of whoever wants it
	owner    *state
	ready    chan struct{} // closed when it has the session
	lease    *lease        // set then, for what needs plugins
	released bool          // it has let go

	after protocol.TurnID         // the turn after which a plugin wants it; empty: a client does
	stop  context.CancelCauseFunc // set then
}

// hold waits until a command may have the session, after check has found that there is such a command.
func (e *Engine) hold(ctx context.Context, id protocol.SessionID, check func(*plugin.Session) error) (*sessionHold, error) {
	l, err := e.lend(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := check(l.plugins); err != nil {
		l.release()
		return nil, err
	}
	w, err := do(ctx, e, id, func(_ context.Context, st *state) (*sessionHold, error) {
		w := st.holds.request(ctx, st)
		st.turns.startNext()
		return w, nil
	})
	l.release() // by the time that the command has the session, its plugins may be others
	if err != nil {
		return nil, err
	}
	if err := w.acquire(); err != nil {
		return nil, err
	}
	return w, nil
}

// noCheck is for hold where there is nothing to refuse.
func noCheck(*plugin.Session) error { return nil }

// acquire waits until a command has the session. If it fails, the command waits no more.
func (w *sessionHold) acquire() error {
	err := w.waitGranted()
	if err == nil {
		w.lease, err = w.owner.plugins.lend(w.ctx, nil) // from now on the plugins stay as they are
	}
	if err != nil {
		w.release()
	}
	return err
}

// waitGranted is taken for what needs no plugins.
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

// heldResult is what work came to while it held a session, and what plugins keep then.
type heldResult[W any] struct {
	result   W
	captured *captured
	issues   []protocol.Issue // of capturing
}

// withHeld has plugins of a session that is held do some work, and settles on the actor what it came to. Whatever happens, the
// session is given back then.
func withHeld[W, T any](w *sessionHold, work func(context.Context, *lease) (W, error), settle func(context.Context, *state, heldResult[W]) (T, error)) (v T, err error) {
	defer w.release()
	var done heldResult[W]
	if done.result, err = work(w.lease.ctx, w.lease); err != nil {
		return v, cancelledOr(w.lease.ctx, err)
	}
	done.captured, done.issues = w.lease.eng.captureAll(context.WithoutCancel(w.lease.ctx), w.lease.id, w.lease.plugins, w.owner.stored.pluginState())
	return release(w, func(ctx context.Context, st *state) (T, error) { return settle(ctx, st, done) })
}

// release gives the session back, or the place in the queue for it, unless that is done.
func (w *sessionHold) release() {
	if !w.released {
		// An error means that the session is gone, and what was held with it.
		_, _ = release(w, func(context.Context, *state) (struct{}, error) { return struct{}{}, nil })
	}
}

// release does what is left to do on the actor, and gives the session back. It does nothing if the session was loaded again
// meanwhile.
func release[T any](w *sessionHold, f func(context.Context, *state) (T, error)) (T, error) {
	w.released = true
	v, err := onState(w.owner, func(ctx context.Context, st *state) (v T, err error) {
		defer w.handOver()
		return f(ctx, st)
	})
	w.lease.release() // if the state is given up, that waits for it
	return v, err
}

// handOver gives the session on to the next command or turn.
func (w *sessionHold) handOver() {
	w.owner.holds.remove(w)
	w.lease.release()
	w.owner.eng.sessionIdle.Notify()
	w.owner.turns.startNext()
}

// cancel stops what a plugin wants after a turn, once the request to stop it is stored.
func (w *sessionHold) cancel(ctx context.Context, evidence protocol.CancelEvidence, rc receipt.Request) (*protocol.TurnInterruptResult, error) {
	result := &protocol.TurnInterruptResult{Status: protocol.InterruptRequested, Seq: w.owner.row.Seq}
	if err := w.owner.storeReceipt(ctx, rc, result); err != nil {
		return nil, err
	}
	w.stop(&cancelled{evidence})
	return result, nil
}
