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
	if err := s.settled(ctx); err != nil {
		return turn.CellReply{}, err
	}
	return invoke(ctx, s, HookExecutor, s.executor.plugin, func() (turn.CellReply, error) {
		if !s.running.CompareAndSwap(false, true) {
			return turn.CellReply{}, errExecuting
		}
		cell := make(chan struct{})
		defer close(cell)
		defer s.running.Store(false)
		s.cell.Store(&cell)
		return s.executor.do.Execute(ctx, own(call))
	})
}

// LeaveCell tells that nobody waits any more for a code cell that has not returned.
func (s *Session) LeaveCell() {
	if cell := s.cell.Load(); cell != nil {
		s.away.leave(s.executor.plugin, func() { <-*cell })
	}
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
	if err := s.settled(ctx); err != nil {
		return nil, err
	}
	return invoke(ctx, s, HookCodeSnapshot, s.executor.plugin, func() (*Execution, error) {
		switch {
		case s.running.Load():
			return nil, errExecuting
		case !x.Dirty():
			return nil, nil
		}
		state, err := x.Snapshot(ctx)
		return &Execution{State: own(state), Stored: func() { s.keptNow(x) }}, err
	})
}

// keptNow tells the code executor that its state is stored, and waits for nothing: whoever uses it next does.
func (s *Session) keptNow(x ExecutionState) {
	told := make(chan struct{})
	s.keeping.Store(&told)
	go func() {
		defer close(told)
		// A panic here comes to this: the state is captured once more.
		_, _ = contain(func() (struct{}, error) { x.Stored(); return struct{}{}, nil })
	}()
}

// settled waits until the code executor has taken in what is stored of it.
func (s *Session) settled(ctx context.Context) error {
	told := s.keeping.Load()
	switch {
	case s.away.has(s.executor.plugin):
		return errExecuting
	case told == nil:
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, shortPatience, ErrLate)
	defer cancel()
	select {
	case <-*told:
		return nil
	case <-ctx.Done():
	}
	s.away.leave(s.executor.plugin, func() { <-*told })
	return &LeftError{s.executor.plugin, HookCodeStored, context.Cause(ctx)}
}

// RestoreExecution gives the code executor its state back; nil: it is to be as if new.
func (s *Session) RestoreExecution(ctx context.Context, state []byte) error {
	x, ok := s.keepsExecution()
	if !ok {
		return nil
	}
	if err := s.settled(ctx); err != nil {
		return err
	}
	_, err := invoke(ctx, s, HookCodeRestore, s.executor.plugin, func() (struct{}, error) { return struct{}{}, x.Restore(ctx, own(state)) })
	return err
}

func (s *Session) keepsExecution() (ExecutionState, bool) {
	if s.executor == nil {
		return nil, false
	}
	x, ok := s.executor.do.(ExecutionState)
	return x, ok
}
