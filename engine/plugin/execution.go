package plugin

import (
	"context"
	"errors"

	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// CodeCall is a code cell.
type CodeCall struct {
	TurnID       protocol.TurnID `json:"turnId"`
	Language     string          `json:"language"`
	Source       string          `json:"source"`
	AcceptFinish bool            `json:"acceptFinish,omitempty"` // the cell may end the turn
}

// CodeExecutor runs code cells, one at a time. What it keeps between cells survives if it implements ExecutionState.
type CodeExecutor interface {
	// Execute ends soon after its context. What goes wrong in the code is said in the reply.
	Execute(context.Context, *CodeCall) (turn.CellReply, error)
}

// ExecutionState is a CodeExecutor whose state is stored with the session.
type ExecutionState interface {
	// Dirty tells whether the state has changed since it was stored or restored.
	Dirty() bool
	// Snapshot gives the state; nil: there is nothing to keep.
	Snapshot(context.Context) ([]byte, error)
	// Stored tells that what Snapshot gave is durable.
	Stored()
	// Restore takes state back; nil: be as if new.
	Restore(context.Context, []byte) error
}

// ErrNoExecutor means that no plugin of a session runs code.
var ErrNoExecutor = errors.New("code execution unavailable")

// errExecuting means that a cell does not end although its context has.
var errExecuting = errors.New("a code cell still runs")

// Execute runs a code cell.
func (s *Session) Execute(ctx context.Context, call *CodeCall) (turn.CellReply, error) {
	if s.executor == nil {
		return turn.CellReply{}, ErrNoExecutor
	}
	s.running.Add(1)
	defer s.running.Add(-1)
	return invoke(ctx, HookExecutor, s.executor.plugin, func() (turn.CellReply, error) { return s.executor.do.Execute(ctx, own(call)) })
}

// Executes tells whether a plugin of the session runs code.
func (s *Session) Executes() bool { return s.executor != nil }

// Execution is the state of a code executor on its way into the store.
type Execution struct {
	State  []byte // nil: there is nothing to keep
	Stored func() // to be called once it is durable
}

// CaptureExecution asks the code executor for its state; nil: it is as it is stored.
func (s *Session) CaptureExecution(ctx context.Context) (*Execution, error) {
	x, ok := s.keepsExecution()
	if !ok {
		return nil, nil
	}
	return invoke(ctx, HookExecutor, s.executor.plugin, func() (*Execution, error) {
		switch {
		case s.running.Load() > 0:
			return nil, errExecuting
		case !x.Dirty():
			return nil, nil
		}
		state, err := x.Snapshot(ctx)
		return &Execution{State: own(state), Stored: func() {
			// A panic here comes to this: the state is captured once more.
			_, _ = contain(func() (struct{}, error) { x.Stored(); return struct{}{}, nil })
		}}, err
	})
}

// RestoreExecution gives the code executor its state back; nil: it is to be as if new.
func (s *Session) RestoreExecution(ctx context.Context, state []byte) error {
	x, ok := s.keepsExecution()
	if !ok {
		return nil
	}
	_, err := invoke(ctx, HookExecutor, s.executor.plugin, func() (struct{}, error) { return struct{}{}, x.Restore(ctx, own(state)) })
	return err
}

func (s *Session) keepsExecution() (ExecutionState, bool) {
	if s.executor == nil {
		return nil, false
	}
	x, ok := s.executor.do.(ExecutionState)
	return x, ok
}
