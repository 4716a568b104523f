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

// Signal gives a running task something that it declares to take. It returns when that is taken.
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

// over reports whether work has ended or is ending.
func over(w *work) bool {
	select {
	case <-w.ended:
		return true
	case <-time.After(signalGrace):
		return false
	}
}

// signalGrace is how long the end of a command takes to be told that does not take what is sent to it.
const signalGrace = 100 * time.Millisecond

// ErrTaskLeaving means that a task is just given to another session.
var ErrTaskLeaving = errors.New("it is being transferred to another session; nothing was changed, so repeat the request")

// ErrTaskElsewhere means that no worker of this daemon runs the task.
var ErrTaskElsewhere = errors.New("no worker of this daemon runs it, so it cannot take signals")

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
