package engine

import (
	"context"
	"slices"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// writer is a command or a task that holds a session while it runs: it waits for the running turn to end, and no turn starts
// meanwhile. What it comes to is committed on the actor before it lets go.
type writer struct {
	ctx   context.Context // of whoever wants it
	owner *state
	ready chan struct{} // closed when it has the session
	lease *lease        // set then
	err   error         // or why there is none
	over  bool          // it has let go

	after protocol.TurnID         // the turn after which a plugin wants it; empty: a client does
	stop  context.CancelCauseFunc // set then
}

// hold waits until a command may have the session, after check has found that there is such a command.
func (e *Engine) hold(ctx context.Context, id protocol.SessionID, check func(*plugin.Session) error) (*writer, error) {
	// Not with ctx: who has asked must be there to leave.
	w, err := do(context.WithoutCancel(ctx), e, id, func(_ context.Context, st *state) (*writer, error) {
		t, err := st.openTools(st.row.Config)
		if err == nil {
			err = check(t.plugins)
		}
		if err != nil {
			return nil, err
		}
		w := st.enlist(ctx)
		st.kick()
		return w, nil
	})
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

// enlist has a command wait for the session.
func (st *state) enlist(ctx context.Context) *writer {
	w := &writer{ctx: ctx, owner: st, ready: make(chan struct{})}
	st.writers = append(st.writers, w)
	return w
}

// taken waits until a command has the session. If it fails, the command waits no more.
func (w *writer) taken() error {
	err := w.granted()
	if err == nil {
		err = w.err
	}
	if err != nil {
		w.leave()
	}
	return err
}

// granted is taken for what needs no plugins.
func (w *writer) granted() error {
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
func withHeld[W, T any](w *writer, work func(context.Context, *lease) (W, error), settle func(context.Context, *state, worked[W]) (T, error)) (v T, err error) {
	defer w.leave()
	var done worked[W]
	if done.result, err = work(w.lease.ctx, w.lease); err != nil {
		return v, cancelledOr(w.lease.ctx, err)
	}
	done.captured, done.issues = w.lease.eng.captureAll(context.WithoutCancel(w.lease.ctx), w.lease.id, w.lease.plugins, w.owner.plugged)
	return release(w, func(ctx context.Context, st *state) (T, error) { return settle(ctx, st, done) })
}

// leave gives the session back, or the place in the queue for it, unless that is done.
func (w *writer) leave() {
	if !w.over {
		// An error means that the session is gone, and what was held with it.
		_, _ = release(w, func(context.Context, *state) (struct{}, error) { return struct{}{}, nil })
	}
}

// release does what is left to do on the actor, and gives the session back. It does nothing if the session was loaded again
// meanwhile.
func release[T any](w *writer, f func(context.Context, *state) (T, error)) (T, error) {
	w.over = true
	v, err := do(context.WithoutCancel(w.ctx), w.owner.eng, w.owner.session.id, func(ctx context.Context, st *state) (v T, err error) {
		if st != w.owner {
			return v, ErrReloaded
		}
		defer st.dismiss(w)
		return f(ctx, st)
	})
	w.lease.back() // if the state is given up, that waits for it
	return v, err
}

func (st *state) dismiss(w *writer) {
	if st.writer == w {
		st.writer = nil
		w.lease.back()
	}
	st.writers = slices.DeleteFunc(st.writers, func(other *writer) bool { return other == w })
	st.eng.settled.Notify()
	st.kick()
}

// grant gives the session to the next command unless a turn has begun, and tells whether a command has it.
func (st *state) grant() bool {
	switch {
	case st.writer != nil:
		return true
	case len(st.writers) == 0 || st.begun() || st.broken != nil || st.eng.stopping():
		return false
	}
	w := st.writers[0]
	st.writer, st.writers = w, st.writers[1:]
	w.lease, w.err = st.lend(w.ctx, st.row.Config) // from now on the plugins stay as they are
	close(w.ready)
	return true
}

// begun tells whether a turn runs, or has to go on.
func (st *state) begun() bool {
	return st.current != nil || st.queue.Begun()
}
