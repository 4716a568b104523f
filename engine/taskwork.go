package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lashd/engine/background"
	"lashd/engine/task"
	"lashd/engine/task/live"
	"lashd/rpc/protocol"
)

// worker does what a task is for, and tells how that ended. It returns soon once ctx is done.
type worker func(ctx context.Context, w *work) *protocol.TaskOutcome

// taskStop is why a worker is stopped.
type taskStop struct{ by, reason string }

func (s *taskStop) Error() string { return "stopped by " + s.by }

func (s *taskStop) outcome() *protocol.TaskOutcome {
	return &protocol.TaskOutcome{Kind: protocol.TaskStopped, By: s.by, Message: s.reason}
}

// errTaskTime is the cause with which an attempt is stopped that takes too long.
var errTaskTime = errors.New("the task exceeded its timeout")

// work is an attempt at a task. It belongs to the engine: a session may leave memory and come back beside it.
type work struct {
	eng           *Engine
	id            protocol.TaskID
	run           worker // nil: the spec decides
	startIsStored bool   // the store knows that this attempt started
	slotless      bool   // it only watches something, so it needs no slot
	keepOnStop    bool   // when the daemon stops, leave the task as it is for the next one
	cancel        context.CancelCauseFunc
	ctx           context.Context
	ended         chan struct{}
	signals       chan background.Signal
	endRequested  chan struct{} // closed when the task is asked to end
	slots         chan struct{} // it needs one of these to work
	stateChange   chan struct{} // holds a value while the task becomes idle or resumes

	mu      sync.Mutex
	session protocol.SessionID // owns the task now
	stop    *taskStop          // the request to end it; nil: none
	claimed bool               // it holds a slot
	task    protocol.Task      // as of its newest stored event
}

func (ts *Tasks) newWork(t *protocol.Task, run worker) *work {
	w := &work{
		eng: ts.eng, id: t.ID, run: run, session: t.SessionID, slots: ts.eng.workers.slotsFor(t.SessionID, &t.Spec), ended: make(chan struct{}), signals: make(chan background.Signal),
		endRequested: make(chan struct{}), stateChange: make(chan struct{}, 1), slotless: t.Spec.Kind == protocol.TaskMonitor || task.Detached(&t.Spec),
	}
	w.ctx, w.cancel = context.WithCancelCause(ts.eng.actorContext())
	return w
}

// Go implements live.Attempt. It begins nothing when the daemon stops: the next one finds the task.
func (w *work) Go(t protocol.Task, begun bool) {
	begins := w.eng.group.IfOpen(func() {
		w.task, w.startIsStored = t, begun
		w.eng.workers.add(w)
	})
	if !begins {
		w.Release()
		return
	}
	go w.runAttempt()
}

func (w *work) runAttempt() {
	defer close(w.ended)
	defer w.releaseSlot()
	defer w.Release()
	defer w.cancel(nil)
	if err := w.awaitSlot(w.ctx); err != nil {
		w.close(w.stopped(w.ctx))
		return
	}
	if !w.startIsStored {
		if err := w.addEvent(protocol.TaskEvent{Kind: protocol.TaskWasStarted, Incarnation: w.eng.incarnation}); err != nil {
			return
		}
	}
	w.close(w.attempt())
}

// attempt works, for as long as the task may take.
func (w *work) attempt() (out *protocol.TaskOutcome) {
	ctx := w.ctx
	if ms := w.task.Spec.TimeoutMs; ms > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, time.Duration(ms)*time.Millisecond, errTaskTime)
		defer cancel()
	}
	defer func() {
		if p := recover(); p != nil {
			err := w.eng.group.Recovered("task", w.id, p)
			out = &protocol.TaskOutcome{Kind: protocol.TaskError, Code: "panic", Message: err.Error()}
		}
	}()
	run := w.run
	if run == nil {
		var err error
		if run, err = w.eng.Tasks.workerFor(&w.task.Spec); err != nil {
			return &protocol.TaskOutcome{Kind: protocol.TaskError, Code: "no_worker", Message: err.Error()}
		}
	}
	return w.attributed(ctx, task.Bounded(run(ctx, w)))
}

// attributed is an outcome that says for whom the task was stopped, if it was.
func (w *work) attributed(ctx context.Context, out *protocol.TaskOutcome) *protocol.TaskOutcome {
	if out != nil && (out.Kind != protocol.TaskStopped || out.By != "") {
		return out
	}
	why := w.stopped(ctx)
	if out != nil && why != nil && why.Kind == protocol.TaskStopped {
		why.ExitCode, why.Signal = out.ExitCode, out.Signal
	}
	return why
}

// stopped is the outcome of an attempt that ctx has stopped; nil: it has none, as the next daemon makes another.
func (w *work) stopped(ctx context.Context) *protocol.TaskOutcome {
	stop, asked := errors.AsType[*taskStop](context.Cause(ctx))
	switch {
	case asked:
		return stop.outcome()
	case errors.Is(context.Cause(ctx), errTaskTime):
		return &protocol.TaskOutcome{Kind: protocol.TaskStopped, By: task.TimeLimit, Code: "timeout", Message: fmt.Sprintf("the task exceeded its timeout of %d ms", w.task.Spec.TimeoutMs)}
	case w.task.Spec.Recovery == protocol.RecoverRerun || w.task.Attempt == 0 || w.keepOnStop:
		return nil
	}
	return task.Abandoned(&w.task, protocol.WriterDrain, "the daemon that ran it was stopped")
}

// close makes the end of the task durable.
func (w *work) close(out *protocol.TaskOutcome) {
	if out == nil {
		return
	}
	if err := w.addEvent(protocol.TaskEvent{Kind: protocol.TaskWasEnded, Outcome: out}); err != nil {
		w.eng.Log.Error("cannot store the end of a task", "task", w.id, "error", err)
	}
}

// errTaskMoved means that a task is not the session's any more.
var errTaskMoved = errors.New("the task belongs to another session")

// tell makes an event of the task durable. It goes on trying for as long as the daemon lives: what has happened has happened.
// What cannot happen to the task any more is dropped.
func (w *work) addEvent(e protocol.TaskEvent) error {
	ctx := w.eng.actorContext()
	for {
		id := w.owner()
		t, err := do(ctx, w.eng, id, func(ctx context.Context, st *state) (protocol.Task, error) { return st.tasks.addEvent(ctx, w.id, e) })
		switch {
		case err == nil:
			w.mu.Lock()
			w.task = t
			w.mu.Unlock()
			return nil
		case isGone(err), errors.Is(err, ErrShuttingDown), ctx.Err() != nil:
			return err
		case errors.Is(err, errTaskMoved) && w.owner() == id:
			return err
		}
		if pause(ctx, reloadDelay) != nil {
			return context.Cause(ctx)
		}
	}
}

func (ts sessionTasks) addEvent(ctx context.Context, id protocol.TaskID, e protocol.TaskEvent) (t protocol.Task, err error) {
	t, ok := ts.Find(id)
	switch {
	case ts.Leaving(id):
		return t, ErrTaskLeaving
	case !ok:
		return t, errTaskMoved
	}
	err = ts.move(ctx, func(d *live.Draft) { t, _ = d.Add(t, e) })
	return t, err
}

// End implements live.Attempt.
func (w *work) End(by, reason string) { w.end(&taskStop{by: by, reason: reason}) }

// end asks the attempt to end. One that is cooperative goes on until it wants to, and one that only looks at a command until that has
// ended; what does not work yet, ends at once.
func (w *work) end(stop *taskStop) {
	w.mu.Lock()
	again := w.stop != nil
	if !again {
		w.stop = stop
	}
	wants := w.task.Spec.Cancel == protocol.CancelCooperative && w.task.Spec.Command == nil && (w.claimed || w.task.State == protocol.TaskIdle) ||
		task.Detached(&w.task.Spec)
	w.mu.Unlock()
	if !again {
		close(w.endRequested)
	}
	if !wants {
		w.cancel(stop)
	}
}

// signal gives the task something, and waits until it is taken.
func (w *work) signal(ctx context.Context, by, name string, payload []byte) error {
	done := make(chan error, 1)
	select {
	case w.signals <- background.Signal{Name: name, By: by, Payload: payload, Done: done}:
	case <-w.ended:
		return errTaskMoved
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	over := error(errTaskMoved)
	select {
	case err := <-done:
		return err
	case <-w.ended:
	case <-ctx.Done():
		over = context.Cause(ctx)
	}
	if err, taken := ready(done); taken { // the signal may be what ended the work
		return err
	}
	return over
}

// stopWork stops all workers, and waits for them, but not for ever: work of a plugin may not return.
func (ts *Tasks) stopWork() {
	all := ts.eng.workers.list("")
	for _, w := range all {
		w.cancel(errStopped)
	}
	limit := time.NewTimer(stopTimeout)
	defer limit.Stop()
	for _, w := range all {
		select {
		case <-w.ended:
		case <-limit.C:
			ts.eng.Log.Error("worker still runs after its context ended", "task", w.id)
			limit.Reset(0)
		}
	}
}

// now is the task as it is.
func (w *work) now() protocol.Task {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.task
}

// actorContext lives as long as sessions do.
func (e *Engine) actorContext() context.Context {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ctx
}
