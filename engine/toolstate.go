package engine

import (
	"context"
	"errors"

	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Tools lists every tool of a session, members of the catalog or not.
func (e *Engine) Tools(ctx context.Context, p *protocol.SessionParams) (*protocol.ToolListResult, error) {
	return do(ctx, e, p.SessionID, func(_ context.Context, st *state) (*protocol.ToolListResult, error) {
		t, err := st.openTools(st.row.Config)
		if err != nil {
			return nil, err
		}
		return &protocol.ToolListResult{Data: list(t.catalog.Records()), Generation: t.registry.State().Generation}, nil
	})
}

// ToolState reads what a session decided about its tools.
func (e *Engine) ToolState(ctx context.Context, p *protocol.SessionParams) (*protocol.ToolStateResult, error) {
	return do(ctx, e, p.SessionID, func(_ context.Context, st *state) (*protocol.ToolStateResult, error) {
		t, err := st.openTools(st.row.Config)
		if err != nil {
			return nil, err
		}
		return &protocol.ToolStateResult{State: t.registry.State(), Seq: st.row.Seq}, nil
	})
}

// ApplyToolState replaces settings, if nobody changed them since the state was read.
func (e *Engine) ApplyToolState(ctx context.Context, p *protocol.ToolApplyStateParams) (*protocol.ToolStateResult, error) {
	return mutate(ctx, e, p.SessionID, "tool/applyState", p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.ToolStateResult, error) {
		return st.changeTools(ctx, rc, func(r *tool.Registry) (protocol.ToolState, error) { return r.Apply(p.State) })
	})
}

// SetMembership says which tools the model may call, from its next call on.
func (e *Engine) SetMembership(ctx context.Context, p *protocol.ToolSetMembershipParams) (*protocol.ToolStateResult, error) {
	return mutate(ctx, e, p.SessionID, "tool/setMembership", p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.ToolStateResult, error) {
		return st.changeTools(ctx, rc, func(r *tool.Registry) (protocol.ToolState, error) {
			generation := r.State().Generation
			if p.Generation != nil {
				generation = *p.Generation
			}
			return r.SetMembership(generation, p.Members)
		})
	})
}

// changeTools changes the registry and commits what it then says; if that fails, the registry is as before.
func (st *state) changeTools(ctx context.Context, rc receipt, change func(*tool.Registry) (protocol.ToolState, error)) (*protocol.ToolStateResult, error) {
	t, err := st.openTools(st.row.Config)
	if err != nil {
		return nil, err
	}
	before := t.registry.State()
	after, err := change(t.registry)
	if errors.Is(err, tool.ErrGeneration) {
		return nil, &GenerationError{Current: after.Generation}
	}
	if err != nil {
		return nil, err
	}
	result := &protocol.ToolStateResult{State: after, Seq: st.row.Seq + 1}
	c := &persistence.Commit{Receipt: rc.with(result), Component: []persistence.Component{{Name: componentTools, Body: encode(after)}}}
	if _, err := st.commit(ctx, c, logEvent{Event: protocol.Event{Type: protocol.EventToolsChanged, Tools: &after}}); err != nil {
		t.registry.Restore(before)
		return nil, err
	}
	st.saved = after
	t.rebuild()
	return result, nil
}
