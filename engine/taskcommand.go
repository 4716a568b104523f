package engine

import (
	"context"
	"time"

	"lashd/engine/param"
	"lashd/engine/task"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// workerFor returns the worker that does what a spec says. It returns nil for external tasks, which
// run outside lashd, and a *param.Error for specs that lashd cannot run. Monitors have workers of
// their own, which the monitor's start chooses.
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

// sessionRow reads the row of the session that owns the task. It ignores the end of ctx: a task
// that is stopped at once must end as stopped, not fail because its session cannot be read.
func (w *work) sessionRow(ctx context.Context) (persistence.Session, error) {
	return w.eng.store.Session(context.WithoutCancel(ctx), w.owner())
}

// noSession is the outcome of a task whose session cannot be read.
func noSession(err error) *protocol.TaskOutcome {
	return &protocol.TaskOutcome{Kind: protocol.TaskError, Code: "no_session", Message: err.Error()}
}

// runCommand is the worker of background commands. The command ends with the daemon, and with ctx
// when the task is stopped.
func runCommand(ctx context.Context, w *work) *protocol.TaskOutcome {
	row, err := w.sessionRow(ctx)
	if err != nil {
		return noSession(err)
	}
	t := w.now()
	return w.eng.commands.Run(ctx, &t, row.Cwd, w.signals)
}

// runDetached is the worker that starts a detached command, which outlives the daemon, and then
// watches it. The reference to the process is stored as soon as the command runs. If the daemon
// stops before that, the command is not started again, because it may be running; the outputs that
// it left are cleaned up at the next start.
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

// watchDetached is the worker that polls a detached command until it has ended or the daemon stops;
// a nil outcome leaves it to the next daemon. If the task is cancelled, it halts the command once
// and polls fast for its end. A command whose process and exit status are both missing is
// abandoned.
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

// haltDetached halts a detached command and reports whether that succeeded. Failures are logged.
func (ts *Tasks) haltDetached(ctx context.Context, t *protocol.Task) bool {
	err := ts.eng.commands.Halt(ctx, t)
	if err != nil && ctx.Err() == nil {
		ts.eng.Log.Error("cannot halt detached command", "task", t.ID, "error", err)
	}
	return err == nil
}

// haltedBy is the outcome of a command that was halted and did not exit with 0. The exit code is
// missing if the command was killed before it could store one.
func haltedBy(by string, out *protocol.TaskOutcome) *protocol.TaskOutcome {
	stopped := &protocol.TaskOutcome{Kind: protocol.TaskStopped, By: by}
	if out != nil {
		stopped.ExitCode = out.ExitCode
	}
	return stopped
}

// cancelledBy returns who asked for the end of the task, to this daemon or an earlier one. It is
// empty if there was no request or if only an outside system may end the task.
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
