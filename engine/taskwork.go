package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lashd/engine/audit"
	"lashd/engine/background"
	"lashd/engine/task"
	"lashd/engine/task/live"
	"lashd/rpc/protocol"
)

// worker does the work of a task and returns its outcome. It returns soon after ctx is done. A nil
// outcome means that the attempt says nothing about the end of the task: work.attributed decides,
// or the next daemon continues the task.
type worker func(ctx context.Context, w *work) *protocol.TaskOutcome

// taskStop is the cause with which a task's context ends on request: who asked for it and why.
type taskStop struct{ by, reason string }

func (s *taskStop) Error() string { return "stopped by " + s.by }

func (s *taskStop) outcome() *protocol.TaskOutcome {
	return &protocol.TaskOutcome{Kind: protocol.TaskStopped, By: s.by, Message: s.reason}
}

// errTaskTime is the cause with which the context of an attempt ends at the task's timeout.
var errTaskTime = errors.New("the task exceeded its timeout")

// work is one attempt at a task, and implements live.Attempt. It belongs to the engine, not to a
// session's state: the session may leave memory and be loaded again while the attempt runs. One
// goroutine (runAttempt) waits for a slot, runs the worker and reports the end to the actor of the
// owning session. Session and task can change under it when the task is transferred or gets events,
// so mu guards both.
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

// newWork creates an attempt at a task. It starts nothing until Go is called. Its context lives as
// long as sessions do.
func (ts *Tasks) newWork(t *protocol.Task, run worker) *work {
	w := &work{
		eng: ts.eng, id: t.ID, run: run, session: t.SessionID, slots: ts.eng.workers.slotsFor(t.SessionID, &t.Spec), ended: make(chan struct{}), signals: make(chan background.Signal),
		endRequested: make(chan struct{}), stateChange: make(chan struct{}, 1), slotless: t.Spec.Kind == protocol.TaskMonitor || task.Detached(&t.Spec),
	}
	w.ctx, w.cancel = context.WithCancelCause(ts.eng.actorContext())
	return w
}

// Go implements live.Attempt: it starts the attempt's goroutine. If the daemon stops, it starts
// nothing and the next daemon finds the task.
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

// runAttempt is the goroutine of the attempt: it waits for a slot, stores the start, runs the
// worker and stores the end. It closes w.ended last.
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

// attempt runs the worker within the task's timeout, which counts from here and not from the start
// of the task: a task that waits for a slot does not time out. A panic is the outcome "failed" with
// code "panic".
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

// attributed completes an outcome that does not say who stopped the task: it takes origin and
// reason from the cause of ctx.
func (w *work) attributed(ctx context.Context, out *protocol.TaskOutcome) *protocol.TaskOutcome {
	if out != nil && (out.Kind != protocol.TaskStopped || out.By != "") {
		return out
	}
	why := w.stopped(ctx)
	if out != nil && why != nil && why.Kind == protocol.TaskStopped {
		why.ExitCode, why.Signal, why.Refusal = out.ExitCode, out.Signal, out.Refusal
	}
	return why
}

// stopped returns the outcome of an attempt whose context ended: stopped on request, timed out, or
// abandoned because the daemon stops. It returns nil if the next daemon makes another attempt or
// finds the task as it is.
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

// close stores the end of the task. A nil outcome stores nothing.
func (w *work) close(out *protocol.TaskOutcome) {
	if out == nil {
		return
	}
	if err := w.addEvent(protocol.TaskEvent{Kind: protocol.TaskWasEnded, Outcome: out}); err != nil {
		w.eng.Log.Error("cannot store the end of a task", "task", w.id, "error", err)
	}
}

// errTaskMoved means that the task is not live in the session, because it was transferred or has
// ended.
var errTaskMoved = errors.New("the task belongs to another session")

// addEvent stores an event of the task. It retries every reloadDelay as long as the daemon runs,
// because the event has happened: for example while the session is reloaded, the disk is full or
// the task moves to another session. It fails if the session is deleted, the daemon stops, or the
// task is no longer live.
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

// addEvent stores an event of a live task, on the actor. It fails with ErrTaskLeaving or
// errTaskMoved if the task is not live here.
func (ts sessionTasks) addEvent(ctx context.Context, id protocol.TaskID, e protocol.TaskEvent) (t protocol.Task, err error) {
	t, ok := ts.Find(id)
	switch {
	case ts.Leaving(id):
		return t, ErrTaskLeaving
	case !ok:
		return t, errTaskMoved
	}
	err = ts.move(ctx, func(d *live.Draft) { t = audit.AddTaskEvent(d, t, e) })
	return t, err
}

// End implements live.Attempt.
func (w *work) End(by, reason string) { w.end(&taskStop{by: by, reason: reason}) }

// end asks the attempt to end. A cooperative plugin keeps working until it returns by itself, and a
// watched detached command until it has ended. All other work, and work that has no slot yet, is
// stopped at once. Later requests do not replace the first.
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

// signal sends the worker a signal and waits until it was taken. It fails with errTaskMoved if the
// work ends first.
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

// stopWork stops all attempts when the daemon stops, and waits up to stopTimeout for them: a
// plugin's work may never return.
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

// now returns a copy of the task as of its newest stored event.
func (w *work) now() protocol.Task {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.task
}

// actorContext returns the context of all actors. It ends when sessions stop, after the running
// turns were suspended.
func (e *Engine) actorContext() context.Context {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ctx
}
