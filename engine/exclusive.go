package engine

import (
	"context"
	"slices"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// sessionHold is a command or a task that holds a session while it runs: it waits for the running turn to end, and no turn starts
// meanwhile. What it comes to is committed on the actor before it lets go.
type sessionHold struct {
	ctx   context.Context // of whoever wants it
	owner *state
	ready chan struct{} // closed when it has the session
	lease *lease        // set then, for what needs plugins
	over  bool          // it has let go

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
		l.back()
		return nil, err
	}
	w, err := do(ctx, e, id, func(_ context.Context, st *state) (*sessionHold, error) {
		w := st.requestHold(ctx)
		st.startNextTurn()
		return w, nil
	})
	l.back() // by the time that the command has the session, its plugins may be others
	if err != nil {
		return nil, err
	}
	if err := w.taken(); err != nil {
		return nil, err
	}
	return w, nil
}

// unchecked is for hold where there is nothing to refuse.
func unchecked(*plugin.Session) error { return nil }

// requestHold has a command wait for the session.
func (st *state) requestHold(ctx context.Context) *sessionHold {
	w := &sessionHold{ctx: ctx, owner: st, ready: make(chan struct{})}
	st.waitingHolders = append(st.waitingHolders, w)
	return w
}

// taken waits until a command has the session. If it fails, the command waits no more.
func (w *sessionHold) taken() error {
	err := w.granted()
	if err == nil {
		w.lease, err = w.owner.lend(w.ctx, nil) // from now on the plugins stay as they are
	}
	if err != nil {
		w.release()
	}
	return err
}

// granted is taken for what needs no plugins.
func (w *sessionHold) granted() error {
	select {
	case <-w.ready:
		return nil
	case <-w.owner.closed:
		return ErrReloaded
	case <-w.ctx.Done():
		return context.Cause(w.ctx)
	}
}

// worked is what work came to while it held a session, and what plugins keep then.
type worked[W any] struct {
	result   W
	captured *captured
	issues   []protocol.Issue // of capturing
}

// withHeld has plugins of a session that is held do some work, and settles on the actor what it came to. Whatever happens, the
// session is given back then.
func withHeld[W, T any](w *sessionHold, work func(context.Context, *lease) (W, error), settle func(context.Context, *state, worked[W]) (T, error)) (v T, err error) {
	defer w.release()
	var done worked[W]
	if done.result, err = work(w.lease.ctx, w.lease); err != nil {
		return v, cancelledOr(w.lease.ctx, err)
	}
	done.captured, done.issues = w.lease.eng.captureAll(context.WithoutCancel(w.lease.ctx), w.lease.id, w.lease.plugins, w.owner.storedPlugins)
	return release(w, func(ctx context.Context, st *state) (T, error) { return settle(ctx, st, done) })
}

// release gives the session back, or the place in the queue for it, unless that is done.
func (w *sessionHold) release() {
	if !w.over {
		// An error means that the session is gone, and what was held with it.
		_, _ = release(w, func(context.Context, *state) (struct{}, error) { return struct{}{}, nil })
	}
}

// release does what is left to do on the actor, and gives the session back. It does nothing if the session was loaded again
// meanwhile.
func release[T any](w *sessionHold, f func(context.Context, *state) (T, error)) (T, error) {
	w.over = true
	v, err := onState(w.owner, func(ctx context.Context, st *state) (v T, err error) {
		defer st.endHold(w)
		return f(ctx, st)
	})
	w.lease.back() // if the state is given up, that waits for it
	return v, err
}

func (st *state) endHold(w *sessionHold) {
	if st.holder == w {
		st.holder = nil
		w.lease.back()
	}
	st.waitingHolders = slices.DeleteFunc(st.waitingHolders, func(other *sessionHold) bool { return other == w })
	st.eng.settled.Notify()
	st.startNextTurn()
}

// grantHold gives the session to the next command unless a turn has begun, and tells whether a command has it.
func (st *state) grantHold() bool {
	switch {
	case st.holder != nil:
		return true
	case len(st.waitingHolders) == 0 || st.begun() || st.broken != nil || st.eng.stopping():
		return false
	}
	w := st.waitingHolders[0]
	st.holder, st.waitingHolders = w, st.waitingHolders[1:]
	close(w.ready)
	return true
}

// begun tells whether a turn runs, or has to go on.
func (st *state) begun() bool {
	return st.current != nil || st.queue.Begun()
}
