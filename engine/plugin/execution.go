package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// CodeCall is one code cell that the model or a client wrote.
type CodeCall struct {
	TurnID       protocol.TurnID `json:"turnId"` // empty: a client runs the cell
	CellID       protocol.CallID `json:"cellId"` // the same if the cell runs again after a crash
	Language     string          `json:"language"`
	Source       string          `json:"source"`
	AcceptFinish bool            `json:"acceptFinish,omitempty"` // the cell may end the turn
	Schema       json.RawMessage `json:"schema,omitempty"`       // JSON Schema of the value that ends the turn; nil: any value
}

// CellHost is what a running cell reaches of lashd. It serves one cell, and its methods fail once the cell has ended.
// A cell calls one method at a time. If the cell runs again after a crash, each method returns what it returned before, as
// long as the cell calls the same methods with the same arguments; otherwise it fails, and so does the turn.
type CellHost interface {
	// Tools returns the tools that the cell may call. They do not change while the cell runs.
	Tools() []protocol.ToolManifest
	// Call calls tools together and returns their outputs in order. A tool that fails is an output.
	Call(context.Context, []tool.Request) ([]protocol.ToolOutput, error)
	// Now returns the time.
	Now(context.Context) (time.Time, error)
	// Random returns 32 random bytes, for example the seed of a generator.
	Random(context.Context) ([]byte, error)
	// History returns the conversation as the model sees it. The messages are shared and must not be changed.
	History() []*protocol.Message
}

// CodeExecutor runs code cells, one at a time. An executor that keeps state between cells implements ExecutionState to
// make it survive a restart.
type CodeExecutor interface {
	// Execute runs a cell and returns soon after ctx is done. Errors of the code itself belong into the reply; an error
	// means that the executor failed.
	Execute(context.Context, *CodeCall, CellHost) (turn.CellReply, error)
}

// CellReplayer is a CodeExecutor whose cells depend on nothing but their source, the state before them and their
// CellHost. After a crash in the middle of a cell, lashd runs the cell again from its start. Cells of other executors
// do not run again.
type CellReplayer interface {
	ReplaysCells() bool
}

// ExecutionChange is how the state of an executor differs from the one that was stored last.
type ExecutionChange struct {
	Changed map[string][]byte // new values of globals, by name; an empty value is stored as such
	Removed []string          // globals that no longer exist
}

// AppliedTo returns the values after the change. It changes and returns values, or a new map for nil.
func (c ExecutionChange) AppliedTo(values map[string][]byte) map[string][]byte {
	if values == nil {
		values = map[string][]byte{}
	}
	maps.Copy(values, c.Changed)
	for _, name := range c.Removed {
		delete(values, name)
	}
	return values
}

// After returns the change that has the effect of before and then c. It shares nothing with before.
func (c ExecutionChange) After(before ExecutionChange) ExecutionChange {
	all := ExecutionChange{Changed: maps.Clone(before.Changed), Removed: slices.Clone(c.Removed)}
	for _, name := range before.Removed {
		if _, set := c.Changed[name]; !set && !slices.Contains(all.Removed, name) {
			all.Removed = append(all.Removed, name)
		}
	}
	for _, name := range c.Removed {
		delete(all.Changed, name)
	}
	if all.Changed == nil {
		all.Changed = map[string][]byte{}
	}
	maps.Copy(all.Changed, c.Changed)
	return all
}

// ExecutionState is a CodeExecutor whose state is stored with the session, one value per global variable. lashd calls
// these methods only while no cell runs.
type ExecutionState interface {
	// Dirty reports whether the state has changed since it was last stored or restored. It is called before each
	// Snapshot.
	Dirty() bool
	// Snapshot returns what has changed since then.
	Snapshot(context.Context) (ExecutionChange, error)
	// Stored is called after the change of the last Snapshot has become durable. It runs in a goroutine of its own.
	Stored()
	// Restore replaces the state by values, named as Snapshot names them; none resets it to that of a new executor.
	Restore(context.Context, map[string][]byte) error
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
func (e *execution) Execute(ctx context.Context, call *CodeCall, host CellHost) (turn.CellReply, error) {
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
		return e.executor.do.Execute(ctx, own(call), host)
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

// Executor returns the id of the plugin that runs the session's code; "" if there is none.
func (e *execution) Executor() string {
	if e.executor == nil {
		return ""
	}
	return e.executor.plugin
}

// ReplaysCells reports whether a code cell may run again after a crash.
func (e *execution) ReplaysCells() bool {
	if e.executor == nil {
		return false
	}
	r, ok := e.executor.do.(CellReplayer)
	return ok && r.ReplaysCells()
}

// Execution is a captured change of the code executor's state that is about to be stored.
type Execution struct {
	ExecutionChange
	// Stored must be called after the change has become durable. It does not block.
	Stored func()
}

// CaptureExecution captures how the state of the code executor has changed since it was stored. It returns nil if it has
// not, or if the executor keeps none.
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
		changed, err := x.Snapshot(ctx)
		return &Execution{ExecutionChange: changed, Stored: func() { e.notifyStored(x) }}, err
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

// RestoreExecution restores the values of the code executor; none reset it. It does nothing if the executor keeps no
// state.
func (e *execution) RestoreExecution(ctx context.Context, values map[string][]byte) error {
	x, ok := e.statefulExecutor()
	if !ok {
		return nil
	}
	if err := e.awaitStored(ctx); err != nil {
		return err
	}
	_, err := invoke(ctx, e.plugins, HookCodeRestore, e.executor.plugin, func() (struct{}, error) { return struct{}{}, x.Restore(ctx, values) })
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

// ExecutorConfined reports whether code cells reach nothing but their CellHost. Only an executor that ships with lashd is
// believed when it says so, by being a CellReplayer.
func (e *execution) ExecutorConfined() bool {
	return e.ReplaysCells() && e.plugins.Ships(e.executor.plugin)
}

// ExecutorSandboxed reports whether code cells of the session run in a sandbox.
func (e *execution) ExecutorSandboxed() bool {
	return e.executor != nil && e.plugins.Sandboxed(e.executor.plugin)
}
