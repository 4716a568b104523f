package engine

import (
	"context"
	"slices"
	"time"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// writer is a command or a task that holds a session while it runs: it waits for the running turn to end, and no turn starts
// meanwhile. What it comes to is committed on the actor before it lets go.
type writer struct {
	owner *state
	ready chan struct{} // closed when it has the session
	tools *toolbox      // set then
	err   error         // or why there are none
	ctx   context.Context
	stop  context.CancelCauseFunc
	over  chan struct{} // closed when no code of plugins runs for it any more
}

// hold waits until a command may have the session, after check has found that there is such a command.
func (e *Engine) hold(ctx context.Context, id protocol.SessionID, check func(*toolbox) error) (*writer, error) {
	w := newWriter(ctx)
	// Not with ctx: who has asked must be there to leave.
	_, err := do(context.WithoutCancel(ctx), e, id, func(_ context.Context, st *state) (struct{}, error) {
		t, err := st.openTools(st.row.Config)
		if err == nil {
			err = check(t)
		}
		if err == nil {
			st.enlist(w)
			st.kick()
		}
		return struct{}{}, err
	})
	if err != nil {
		w.stop(nil)
		return nil, err
	}
	if err := w.taken(ctx); err != nil {
		return nil, err
	}
	return w, nil
}

func newWriter(ctx context.Context) *writer {
	w := &writer{ready: make(chan struct{}), over: make(chan struct{})}
	w.ctx, w.stop = context.WithCancelCause(ctx)
	return w
}

// enlist has a command wait for the session.
func (st *state) enlist(w *writer) { w.owner, st.writers = st, append(st.writers, w) }

// taken waits until a command has the session. If it fails, the command waits no more.
func (w *writer) taken(ctx context.Context) (err error) {
	select {
	case <-w.ready:
		err = w.err
	case <-w.owner.closed:
		err = ErrReloaded
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		close(w.over)
		w.leave(ctx)
	}
	return err
}

// leave gives the session back, or the place in the queue for it.
func (w *writer) leave(ctx context.Context) {
	// An error means that the session is gone, and what was held with it.
	_, _ = release(ctx, w, func(context.Context, *state) (struct{}, error) { return struct{}{}, nil })
}

// release does what is left to do on the actor, and gives the session back. It does nothing if the session was loaded again
// meanwhile.
func release[T any](ctx context.Context, w *writer, f func(context.Context, *state) (T, error)) (T, error) {
	defer w.stop(nil)
	return do(context.WithoutCancel(ctx), w.owner.eng, w.owner.session.id, func(ctx context.Context, st *state) (v T, err error) {
		if st != w.owner {
			return v, ErrReloaded
		}
		defer st.dismiss(w)
		return f(ctx, st)
	})
}

func (st *state) dismiss(w *writer) {
	if st.writer == w {
		st.writer = nil
		st.borrowed--
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
	w.tools, w.err = st.openTools(st.row.Config)
	st.borrowed++ // from now on the tools stay as they are
	close(w.ready)
	return true
}

// begun tells whether a turn runs, or has to go on.
func (st *state) begun() bool {
	return st.current != nil || len(st.turns) > 0 && st.turns[0].State != protocol.TurnQueued
}

// stopWriter has the command that holds the session end, and waits until nothing of it works with the plugins.
func (st *state) stopWriter() {
	if st.writer == nil {
		return
	}
	st.writer.stop(errStopped)
	limit := time.NewTimer(stopPatience)
	defer limit.Stop()
	if !st.await(st.writer.over, limit.C) {
		st.eng.Log.Error("a command does not return although its context is done", "session", st.id)
	}
}

// queue adds turns to a commit, each with its input. One whose source is known already stays the one that it was. What it
// gives is called once the commit is durable.
func (st *state) queue(ctx context.Context, c *persistence.Commit, wanted []protocol.QueuedInput) (all []protocol.QueuedInput, events []logEvent, queued func(), err error) {
	turns, inputs := slices.Clip(st.turns), slices.Clip(st.inputs)
	known := map[string]protocol.QueuedInput{}
	for _, in := range wanted {
		same, err := st.sameInput(ctx, known, in.Source)
		if err != nil {
			return nil, nil, nil, err
		}
		if same != nil {
			all = append(all, *same)
			continue
		}
		t := st.newTurn()
		in.ID, in.TurnID, in.State, in.AtMs = protocol.NewInputID(), t.ID, protocol.InputQueued, t.AcceptedMs
		known[in.Source] = in
		c.Turns, c.Inputs = append(c.Turns, t.Turn), append(c.Inputs, in)
		turns, inputs, all = append(turns, t), append(inputs, in), append(all, in)
		events = append(events, acceptedEvent(t.ID, in))
	}
	if len(events) > 0 {
		events = append(events, queueChanged(waitingOf(inputs, turns)))
	}
	return all, events, func() { st.turns, st.inputs = turns, inputs }, nil
}

// sameInput is the input that a source has brought before; nil: none.
func (st *state) sameInput(ctx context.Context, known map[string]protocol.QueuedInput, source string) (*protocol.QueuedInput, error) {
	if source == "" {
		return nil, nil
	}
	if in, ok := known[source]; ok {
		return &in, nil
	}
	in, err := st.eng.store.SourceInput(ctx, st.key, source)
	switch {
	case isMissing(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &in, nil
}
