package process

import (
	"context"
	"errors"
	"fmt"

	"lashd/engine/plugin"
	"lashd/engine/turn"
)

// executor is the plugin as what runs code cells.
type executor struct{ *instance }

// Execute implements plugin.CodeExecutor.
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

var errCalls = errors.New("code/execute: it tells of calls that it cannot have made")

func (x *executor) stain(dirty bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.dirty = dirty
}

// Dirty implements plugin.ExecutionState: every cell may change something.
func (x *executor) Dirty() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.dirty
}

// codeState is what the executor keeps.
type codeState struct {
	State []byte `json:"state,omitempty"`
}

// Snapshot implements plugin.ExecutionState.
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

// Stored implements plugin.ExecutionState.
func (x *executor) Stored() { x.stain(false) }

// Restore implements plugin.ExecutionState. A process that is not there is given it with the next use.
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

// giveCode has a process take what the executor keeps; none: it is to be as if new.
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
