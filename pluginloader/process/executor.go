package process

import (
	"context"
	"errors"
	"fmt"

	"lashd/engine/plugin"
	"lashd/engine/turn"
)

// executor implements plugin.CodeExecutor: it runs code cells in the plugin's process. Its state is
// that of the interpreter, for example variables of earlier cells. The engine stores the state with
// the session, and a new process gets the last stored state.
type executor struct{ *instance }

// Execute implements plugin.CodeExecutor. It marks the state as changed before the cell runs,
// because a cell that fails may have changed it too.
func (x *executor) Execute(ctx context.Context, call *plugin.CodeCall) (turn.CellReply, error) {
	x.stain(true)
	answer, err := asked[turn.CellReply](ctx, x.instance, "code/execute", x.factory.config.Deadlines.Code, lastWord, nil, func(s *seat, u until) any {
		return struct {
			of
			until
			*plugin.CodeCall
		}{x.of(s), u, call}
	})
	switch {
	case err != nil:
		return turn.CellReply{}, err
	case len(answer.Calls) > 0:
		return turn.CellReply{}, &Error{Plugin: x.factory.ID(), Code: Protocol, Err: errCalls}
	}
	return *answer, nil
}

// errCalls rejects an answer with tool calls: a process calls tools with host/callTool.
var errCalls = errors.New("code/execute: the answer must not contain tool calls")

// stain records whether the state has changed since it was last stored.
func (x *executor) stain(dirty bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.dirty = dirty
}

// Dirty implements plugin.ExecutionState.
func (x *executor) Dirty() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.dirty
}

// codeState is the executor's state on the wire.
type codeState struct {
	State []byte `json:"state,omitempty"`
}

// Snapshot implements plugin.ExecutionState. It keeps a copy for a later process.
func (x *executor) Snapshot(ctx context.Context) ([]byte, error) {
	answer, err := ask[codeState](ctx, x.instance, "code/snapshot", x.factory.config.Deadlines.State, nil, func(s *seat, u until) any {
		return struct {
			of
			until
		}{x.of(s), u}
	})
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.code = answer.State
	return answer.State, nil
}

// Stored implements plugin.ExecutionState. The engine calls it after the commit with the state.
func (x *executor) Stored() { x.stain(false) }

// Restore implements plugin.ExecutionState. A running process gets the state at once; it loses the
// variables of its current state. If no process runs, the next one gets the state on first use.
func (x *executor) Restore(ctx context.Context, state []byte) error {
	x.mu.Lock()
	s := x.place
	x.code, x.dirty = state, false
	x.mu.Unlock()
	if s == nil || !s.life.alive() {
		return nil
	}
	select {
	case <-s.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if s.err != nil {
		return nil
	}
	return x.giveCode(ctx, s, state)
}

// giveCode sends a state to the process. An empty state resets the executor.
func (i *instance) giveCode(ctx context.Context, s *seat, state []byte) error {
	_, err := put[nothing](ctx, s, "code/restore", i.factory.config.Deadlines.State, 0, nil, func(s *seat, u until) any {
		return struct {
			of
			until
			codeState
		}{i.of(s), u, codeState{state}}
	})
	if err != nil {
		return fmt.Errorf("code executor: %w", err)
	}
	return nil
}
