package engine

import (
	"context"
	"time"

	"lashd/engine/param"
	"lashd/engine/task"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// workerFor is who can do what a spec says.
func (ts *Tasks) workerFor(spec *protocol.TaskSpec) (worker, error) {
	switch {
	case task.Detached(spec):
		return runDetached, nil
	case spec.Recovery == protocol.RecoverExternal:
		return nil, nil
	case spec.Kind == protocol.TaskCommand:
		return runCommand, nil
	case spec.Kind == protocol.TaskMonitor:
		return nil, param.Bad("/spec/kind", "cannot be monitor: start monitors with monitor/start")
	case spec.Subagent != nil:
		return runSubagent, nil
	case spec.Handler != "":
		return pluginWork(nil), nil
	}
	return nil, param.Bad("/spec/kind", "is %q, which lashd cannot run by itself; use recovery external and report the end with task/complete", spec.Kind)
}

// place is the session that a task is at work in. One that is stopped at once is told to be stopped by who goes on, not to be without a session.
func (w *work) sessionRow(ctx context.Context) (persistence.Session, error) {
	return w.eng.store.Session(context.WithoutCancel(ctx), w.owner())
}

func noSession(err error) *protocol.TaskOutcome {
	return &protocol.TaskOutcome{Kind: protocol.TaskError, Code: "no_session", Message: err.Error()}
}

func runCommand(ctx context.Context, w *work) *protocol.TaskOutcome {
	row, err := w.sessionRow(ctx)
	if err != nil {
		return noSession(err)
	}
	t := w.now()
	return w.eng.commands.Run(ctx, &t, row.Cwd, w.signals)
}

// runDetached begins a detached command, and looks at it. A command that is not known to have begun when the daemon ends is not
// begun again.
func runDetached(ctx context.Context, w *work) *protocol.TaskOutcome {
	row, err := w.sessionRow(ctx)
	if err != nil {
		return noSession(err)
	}
	t := w.now()
	ref, err := w.eng.commands.Detach(&t, row.Cwd)
	if err != nil {
		return &protocol.TaskOutcome{Kind: protocol.TaskError, Code: "not_started", Message: err.Error()}
	}
	switch err := w.addEvent(protocol.TaskEvent{Kind: protocol.TaskGotRef, Ref: ref}); {
	case isGone(err): // the session was deleted while the command started
		w.eng.Tasks.haltDetached(ctx, &t)
		return nil
	case err != nil:
		return nil
	}
	return watchDetached(ctx, w)
}

// Intervals between two checks of a detached command. They double from firstLook up to lastLook.
const (
	firstLook = 20 * time.Millisecond
	lastLook  = time.Second
)

// watchDetached looks at a detached command until it has ended, or the daemon ends. It is halted once that is wanted.
func watchDetached(ctx context.Context, w *work) *protocol.TaskOutcome {
	asked, tried, halted := w.endRequested, false, false
	for wait := firstLook; ; wait = min(2*wait, lastLook) {
		t := w.now()
		out, known := w.eng.commands.Ended(&t)
		by := w.cancelledBy()
		switch {
		case halted && (!known || out != nil && *out.ExitCode != 0):
			return haltedBy(by, out)
		case out != nil:
			return out
		case !known:
			return task.Abandoned(&t, protocol.WriterSweep, "its process is gone and it left no exit status")
		case by != "" && !tried:
			tried, halted, wait = true, w.eng.Tasks.haltDetached(ctx, &t), firstLook
			continue
		}
		select {
		case <-asked:
			asked = nil
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

// haltDetached tells whether a detached command is halted.
func (ts *Tasks) haltDetached(ctx context.Context, t *protocol.Task) bool {
	err := ts.eng.commands.Halt(ctx, t)
	if err != nil && ctx.Err() == nil {
		ts.eng.Log.Error("cannot halt detached command", "task", t.ID, "error", err)
	}
	return err == nil
}

// haltedBy is the outcome of a detached command that was halted, and did not end well; of one that was killed nobody knows an exit
// status.
func haltedBy(by string, out *protocol.TaskOutcome) *protocol.TaskOutcome {
	stopped := &protocol.TaskOutcome{Kind: protocol.TaskStopped, By: by}
	if out != nil {
		stopped.ExitCode = out.ExitCode
	}
	return stopped
}

// unwanted is who has asked that the task ends, also before this daemon; empty: nobody.
func (w *work) cancelledBy() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.task.Spec.Cancel == protocol.CancelElsewhere:
		return ""
	case w.stop != nil:
		return w.stop.by
	case w.task.CancelRequested != nil:
		return w.task.CancelRequested.By
	}
	return ""
}
