package plugin

import (
	"context"
	"errors"
	"sync/atomic"

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

// execution is the code executor of a session, if it has one.
type execution struct {
	plugins  *roster
	executor *contribution[CodeExecutor]
	running  atomic.Bool                   // a code cell
	cell     atomic.Pointer[chan struct{}] // closed once the newest code cell has returned; nil: there was none
	keeping  atomic.Pointer[chan struct{}] // closed once the executor has been told what is stored; nil: it was not
}

// Execute runs a code cell.
func (e *execution) Execute(ctx context.Context, call *CodeCall) (turn.CellReply, error) {
	if e.executor == nil {
		return turn.CellReply{}, ErrNoExecutor
	}
	if err := e.settled(ctx); err != nil {
		return turn.CellReply{}, err
	}
	return invoke(ctx, e.plugins, HookExecutor, e.executor.plugin, func() (turn.CellReply, error) {
		if !e.running.CompareAndSwap(false, true) {
			return turn.CellReply{}, errExecuting
		}
		cell := make(chan struct{})
		defer close(cell)
		defer e.running.Store(false)
		e.cell.Store(&cell)
		return e.executor.do.Execute(ctx, own(call))
	})
}

// LeaveCell tells that nobody waits any more for a code cell that has not returned.
func (e *execution) LeaveCell() {
	if cell := e.cell.Load(); cell != nil {
		e.plugins.abandoned.add(e.executor.plugin, func() { <-*cell })
	}
}

// Executes tells whether a plugin of the session runs code.
func (e *execution) Executes() bool { return e.executor != nil }

// Execution is the state of a code executor on its way into the store.
type Execution struct {
	State  []byte // nil: there is nothing to keep
	Stored func() // to be called once it is durable
}

// CaptureExecution asks the code executor for its state; nil: it is as it is stored.
func (e *execution) CaptureExecution(ctx context.Context) (*Execution, error) {
	x, ok := e.keepsExecution()
	if !ok {
		return nil, nil
	}
	if err := e.settled(ctx); err != nil {
		return nil, err
	}
	return invoke(ctx, e.plugins, HookCodeSnapshot, e.executor.plugin, func() (*Execution, error) {
		switch {
		case e.running.Load():
			return nil, errExecuting
		case !x.Dirty():
			return nil, nil
		}
		state, err := x.Snapshot(ctx)
		return &Execution{State: own(state), Stored: func() { e.keptNow(x) }}, err
	})
}

// keptNow tells the code executor that its state is stored, and waits for nothing: whoever uses it next does.
func (e *execution) keptNow(x ExecutionState) {
	told := make(chan struct{})
	e.keeping.Store(&told)
	go func() {
		defer close(told)
		// A panic here comes to this: the state is captured once more.
		_, _ = contain(func() (struct{}, error) { x.Stored(); return struct{}{}, nil })
	}()
}

// settled waits until the code executor has taken in what is stored of it.
func (e *execution) settled(ctx context.Context) error {
	told := e.keeping.Load()
	switch {
	case e.plugins.abandoned.has(e.executor.plugin):
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
	e.plugins.abandoned.add(e.executor.plugin, func() { <-*told })
	return &LeftError{e.executor.plugin, HookCodeStored, context.Cause(ctx)}
}

// RestoreExecution gives the code executor its state back; nil: it is to be as if new.
func (e *execution) RestoreExecution(ctx context.Context, state []byte) error {
	x, ok := e.keepsExecution()
	if !ok {
		return nil
	}
	if err := e.settled(ctx); err != nil {
		return err
	}
	_, err := invoke(ctx, e.plugins, HookCodeRestore, e.executor.plugin, func() (struct{}, error) { return struct{}{}, x.Restore(ctx, own(state)) })
	return err
}

func (e *execution) keepsExecution() (ExecutionState, bool) {
	if e.executor == nil {
		return nil, false
	}
	x, ok := e.executor.do.(ExecutionState)
	return x, ok
}

// ExecutorSandboxed tells whether code cells of the session run in a sandbox.
func (e *execution) ExecutorSandboxed() bool {
	return e.executor != nil && e.plugins.Sandboxed(e.executor.plugin)
}
