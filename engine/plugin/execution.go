package plugin

import (
	"context"
	"errors"
	"sync/atomic"

	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// CodeCall is one code cell that the model wrote.
type CodeCall struct {
	TurnID       protocol.TurnID `json:"turnId"`
	Language     string          `json:"language"`
	Source       string          `json:"source"`
	AcceptFinish bool            `json:"acceptFinish,omitempty"` // the cell may end the turn
}

// CodeExecutor runs code cells, one at a time. An executor that keeps state between cells implements ExecutionState to
// make it survive a restart.
type CodeExecutor interface {
	// Execute runs a cell and returns soon after ctx is done. Errors of the code itself belong into the reply; an error
	// means that the executor failed.
	Execute(context.Context, *CodeCall) (turn.CellReply, error)
}

// ExecutionState is a CodeExecutor whose state is stored with the session. lashd calls these methods only while no cell
// runs.
type ExecutionState interface {
	// Dirty reports whether the state has changed since it was last stored or restored. It is called before each
	// Snapshot.
	Dirty() bool
	// Snapshot returns the state; nil means that there is nothing to keep.
	Snapshot(context.Context) ([]byte, error)
	// Stored is called after the state of the last Snapshot has become durable. It runs in a goroutine of its own.
	Stored()
	// Restore replaces the state; nil resets it to that of a new executor.
	Restore(context.Context, []byte) error
}

// ErrNoExecutor means that no plugin of the session runs code.
var ErrNoExecutor = errors.New("code execution unavailable")

// errExecuting means that a cell is still running although its context ended, so the executor's state cannot be used.
var errExecuting = errors.New("a code cell still runs")

// execution holds the code executor of a session, if it has one, and serializes its use: at most one cell at a time,
// and no other call until Stored has returned.
type execution struct {
	plugins  *roster
	executor *contribution[CodeExecutor]
	running  atomic.Bool                   // a code cell is running
	cell     atomic.Pointer[chan struct{}] // closed when the newest cell returns; nil: none has run
	notified atomic.Pointer[chan struct{}] // closed when the executor's Stored returns; nil: never called
}

// Execute runs a code cell. It fails with ErrNoExecutor without an executor, and with errExecuting while an earlier
// cell still runs.
func (e *execution) Execute(ctx context.Context, call *CodeCall) (turn.CellReply, error) {
	if e.executor == nil {
		return turn.CellReply{}, ErrNoExecutor
	}
	if err := e.awaitStored(ctx); err != nil {
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

// AbandonCell abandons the code cell that is running. Until it returns, the executor's state is neither captured nor
// used.
func (e *execution) AbandonCell() {
	if cell := e.cell.Load(); cell != nil {
		e.plugins.abandoned.add(e.executor.plugin, func() { <-*cell })
	}
}

// Executes reports whether a plugin of the session runs code.
func (e *execution) Executes() bool { return e.executor != nil }

// Execution is a captured state of the code executor that is about to be stored.
type Execution struct {
	State []byte // nil: there is nothing to keep
	// Stored must be called after State has become durable. It does not block.
	Stored func()
}

// CaptureExecution captures the state of the code executor. It returns nil if the state has not changed since it was
// stored, or if the executor keeps none.
func (e *execution) CaptureExecution(ctx context.Context) (*Execution, error) {
	x, ok := e.statefulExecutor()
	if !ok {
		return nil, nil
	}
	if err := e.awaitStored(ctx); err != nil {
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
		return &Execution{State: own(state), Stored: func() { e.notifyStored(x) }}, err
	})
}

// notifyStored notifies the code executor, in a goroutine, that its state is stored. The next use of the executor waits for
// that in awaitStored.
func (e *execution) notifyStored(x ExecutionState) {
	done := make(chan struct{})
	e.notified.Store(&done)
	go func() {
		defer close(done)
		// A panic is ignored: the executor stays dirty, and its state is captured again.
		_, _ = contain(func() (struct{}, error) { x.Stored(); return struct{}{}, nil })
	}()
}

// awaitStored waits until the executor's Stored has returned. It fails with errExecuting if a call was abandoned. If Stored
// takes longer than shortTimeout, awaitStored abandons that call and returns a AbandonedError.
func (e *execution) awaitStored(ctx context.Context) error {
	done := e.notified.Load()
	switch {
	case e.plugins.abandoned.has(e.executor.plugin):
		return errExecuting
	case done == nil:
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, shortTimeout, ErrLate)
	defer cancel()
	select {
	case <-*done:
		return nil
	case <-ctx.Done():
	}
	e.plugins.abandoned.add(e.executor.plugin, func() { <-*done })
	return &AbandonedError{e.executor.plugin, HookCodeStored, context.Cause(ctx)}
}

// RestoreExecution restores the state of the code executor; nil resets it. It does nothing if the executor keeps no
// state.
func (e *execution) RestoreExecution(ctx context.Context, state []byte) error {
	x, ok := e.statefulExecutor()
	if !ok {
		return nil
	}
	if err := e.awaitStored(ctx); err != nil {
		return err
	}
	_, err := invoke(ctx, e.plugins, HookCodeRestore, e.executor.plugin, func() (struct{}, error) { return struct{}{}, x.Restore(ctx, own(state)) })
	return err
}

// statefulExecutor returns the executor as an ExecutionState, if it is one.
func (e *execution) statefulExecutor() (ExecutionState, bool) {
	if e.executor == nil {
		return nil, false
	}
	x, ok := e.executor.do.(ExecutionState)
	return x, ok
}

// ExecutorSandboxed reports whether code cells of the session run in a sandbox.
func (e *execution) ExecutorSandboxed() bool {
	return e.executor != nil && e.plugins.Sandboxed(e.executor.plugin)
}
