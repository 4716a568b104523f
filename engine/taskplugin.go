package engine

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/task"
	"lashd/rpc/protocol"
)

// pluginWork returns the worker for work that a plugin does: f, or the handler that the spec names
// if f is nil.
//
// If the plugins are reloaded during the work, the attempt is lost. Then the task's recovery
// decides: owner-bound work is abandoned, and rerunnable work starts another attempt after
// reloadDelay, as long as its limit of attempts allows.
func pluginWork(f plugin.TaskFunc) worker {
	return func(ctx context.Context, w *work) *protocol.TaskOutcome {
		for {
			out, given := w.runPlugin(ctx, f)
			if !given {
				return out
			}
			t := w.now()
			if t.Spec.Recovery == protocol.RecoverOwner {
				return task.Abandoned(&t, protocol.WriterDrain, "its session was loaded again, and its plugins were restarted")
			}
			if v := task.Recover(&t); v.End != nil {
				return v.End
			}
			if pause(ctx, reloadDelay) != nil || w.addEvent(protocol.TaskEvent{Kind: protocol.TaskWasStarted, Incarnation: w.eng.incarnation}) != nil {
				return w.stopped(ctx)
			}
		}
	}
}

// openForHandler leases the plugins of a session before a task with a handler starts, so that the
// actor can check the handler. It returns nil if the spec needs no plugin. The caller gives the
// lease back.
func openForHandler(ctx context.Context, e *Engine, id protocol.SessionID, spec *protocol.TaskSpec) (*lease, error) {
	if spec.Handler == "" || spec.Recovery == protocol.RecoverExternal {
		return nil, nil
	}
	return e.lend(ctx, id)
}

// checkHandler rejects a spec whose handler the plugin does not have. It runs on the actor, where
// openForHandler's lease keeps the plugins open.
func (ts sessionTasks) checkHandler(spec *protocol.TaskSpec) error {
	if spec.Handler == "" || spec.Recovery == protocol.RecoverExternal {
		return nil
	}
	t := ts.st.plugins.opened()
	if t == nil {
		return ErrReloaded
	}
	if t.plugins.Handler(spec.Plugin, spec.Handler) == nil {
		return param.Bad("/spec/handler", "is not a handler of plugin %q in this session", spec.Plugin)
	}
	return nil
}

// runPlugin runs the plugin's function for the task, with a lease that keeps the plugins open.
// retry says that this attempt ended without an outcome because its plugins were closed, or because
// the plugin asked to be run again; the caller decides about another attempt.
//
// The plugins may be replaced in the session while the function runs. While it runs, the session
// stays in memory.
func (w *work) runPlugin(ctx context.Context, f plugin.TaskFunc) (out *protocol.TaskOutcome, given bool) {
	t := w.now()
	l, err := w.eng.lend(ctx, w.owner())
	if err != nil {
		return noPlugins(ctx, err)
	}
	l.allowReplace() // it may take long: let the session replace these plugins while they stay open for it
	defer l.release()
	defer l.owner.plugins.beginTask()()
	if f == nil {
		f = l.plugins.Handler(t.Spec.Plugin, t.Spec.Handler)
	}
	if f == nil {
		return &protocol.TaskOutcome{Kind: protocol.TaskError, Code: "no_handler", Message: "the plugin no longer has the handler of this task"}, false
	}
	out, err = w.perform(l, &t, f)
	switch {
	case errors.As(err, new(*plugin.AbandonedError)):
		return task.Abandoned(&t, protocol.WriterDrain, err.Error()), false
	case err == nil && out != nil && out.Kind == protocol.TaskLost && t.Spec.Recovery == protocol.RecoverRerun && ctx.Err() == nil:
		return nil, true
	case err == nil && out == nil && l.ctx.Err() == nil:
		return w.done(), false
	case ctx.Err() == nil && l.ctx.Err() != nil:
		return out, out == nil
	case err != nil && ctx.Err() == nil:
		w.eng.group.LogPanic(err)
		return &protocol.TaskOutcome{Kind: protocol.TaskError, Code: "failed", Message: err.Error()}, false
	}
	return out, false
}

// noPlugins returns the result of an attempt for which the session's plugins could not be leased.
func noPlugins(ctx context.Context, err error) (out *protocol.TaskOutcome, given bool) {
	switch {
	case ctx.Err() != nil, errors.Is(err, ErrShuttingDown):
		return nil, false
	case errors.Is(err, ErrReloaded):
		return nil, true
	}
	return &protocol.TaskOutcome{Kind: protocol.TaskError, Code: "no_plugins", Message: err.Error()}, false
}

// done is the outcome of work that returned without one: stopped if that was requested, else
// completed.
func (w *work) done() *protocol.TaskOutcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop != nil {
		return w.stop.outcome()
	}
	return &protocol.TaskOutcome{Kind: protocol.TaskDone}
}

// perform calls the plugin's function with the task's output, signals and services, and returns its
// outcome. Signals are forwarded until it returns. The services have the authority that the task
// was started with, reduced to what its present session allows. A panic of the function is returned
// as an error.
func (w *work) perform(l *lease, t *protocol.Task, f plugin.TaskFunc) (*protocol.TaskOutcome, error) {
	output, err := w.eng.commands.Outputs.Writer(t)
	if err != nil {
		return nil, err
	}
	defer output.Close()
	ctx, cancel := context.WithCancel(l.ctx)
	signals := make(chan plugin.TaskSignal)
	var passing sync.WaitGroup
	passing.Go(func() { w.forwardSignals(ctx, signals) })
	defer passing.Wait()
	defer cancel()
	ceiling, err := w.eng.taskCeiling(ctx, t, l.id)
	if err != nil {
		return nil, err
	}
	host := &services{eng: w.eng, session: l.id, turn: t.Origin.TurnID, ceiling: ceiling, work: w, tracer: w.eng.traceOf(l.id)}
	return l.plugins.Work(l.ctx, cmp.Or(t.Spec.Plugin, t.Origin.Plugin), f, &plugin.TaskRun{
		Task: *t, Host: host.all(), Asked: w.endRequested, Signals: signals, Output: output,
	})
}

// forwardSignals passes signals to the plugin's function one at a time, and confirms each once the
// function has received it.
func (w *work) forwardSignals(ctx context.Context, signals chan<- plugin.TaskSignal) {
	for {
		select {
		case s := <-w.signals:
			select {
			case signals <- plugin.TaskSignal{Name: s.Name, Payload: s.Payload}:
				s.Done <- nil
			case <-ctx.Done():
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
