package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lashd/engine/background"
	"lashd/engine/param"
	"lashd/rpc/protocol"
)

// Signal sends a running task one of the signals that it declares, and returns once the worker has
// taken it. Signals are not stored: a task that is restarted does not get them again. It fails with
// *TaskEndedError if the task has ended and with ErrTaskElsewhere if no worker of this daemon runs
// it.
func (ts *Tasks) Signal(ctx context.Context, client protocol.ClientID, p *protocol.TaskSignalParams) (*protocol.TaskResult, error) {
	t, err := ts.visible(ctx, p.SessionID, p.TaskID)
	if err != nil {
		return nil, err
	}
	if t.State.Final() {
		return nil, &TaskEndedError{t}
	}
	if err := checkSignal(&t.Spec, p); err != nil {
		return nil, err
	}
	w := ts.eng.workers.of(t.SessionID, t.ID)
	if w == nil {
		return nil, fmt.Errorf("task %s: %w", t.ID, ErrTaskElsewhere)
	}
	if err := w.signal(ctx, asker(client), p.Name, p.Payload); errors.Is(err, errTaskMoved) || errors.Is(err, background.ErrClosed) && over(w) {
		return nil, ts.ended(ctx, t.SessionID, t.ID)
	} else if err != nil {
		return nil, err
	}
	return &protocol.TaskResult{Task: t}, nil
}

// over reports whether a worker has ended or ends within signalGrace.
func over(w *work) bool {
	select {
	case <-w.ended:
		return true
	case <-time.After(signalGrace):
		return false
	}
}

// signalGrace is how long Signal waits for the end of a command that closed its input, so that the
// caller learns that the task ended and not only that the signal failed.
const signalGrace = 100 * time.Millisecond

// ErrTaskLeaving means that the task is being transferred to another session. Nothing was changed
// and the request can be repeated.
var ErrTaskLeaving = errors.New("it is being transferred to another session; nothing was changed, so repeat the request")

// ErrTaskElsewhere means that no worker of this daemon runs the task.
var ErrTaskElsewhere = errors.New("no worker of this daemon runs it, so it cannot take signals")

// checkSignal checks that a task declares a signal, or that it is built in for commands, and that
// the payload fits its schema.
func checkSignal(spec *protocol.TaskSpec, p *protocol.TaskSignalParams) error {
	declared := spec.Signals
	if spec.Command != nil {
		declared = slices.Concat(background.Signals(spec.Command), declared)
	}
	i := slices.IndexFunc(declared, func(s protocol.TaskSignalType) bool { return s.Name == p.Name })
	if i < 0 {
		return param.Bad("/name", "must be a signal that the task declares")
	}
	return param.CheckPayload("/payload", declared[i].Schema, p.Payload)
}
