package engine

import (
	"context"
	"errors"

	"lashd/engine/change"
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
		records, err := callPluginOnActor(st, func(context.Context) ([]protocol.ToolRecord, error) { return t.catalog.Records(), nil })
		return &protocol.ToolListResult{Data: list(records), Generation: t.composer.Base().Generation()}, err
	})
}

// ToolState reads what a session decided about its tools.
func (e *Engine) ToolState(ctx context.Context, p *protocol.SessionParams) (*protocol.ToolStateResult, error) {
	return do(ctx, e, p.SessionID, func(_ context.Context, st *state) (*protocol.ToolStateResult, error) {
		t, err := st.openTools(st.row.Config)
		if err != nil {
			return nil, err
		}
		return &protocol.ToolStateResult{State: t.composer.Base().State(), Seq: st.row.Seq}, nil
	})
}

// ApplyToolState replaces all settings, if nobody changed them since the state was read.
func (e *Engine) ApplyToolState(ctx context.Context, p *protocol.ToolApplyStateParams) (*protocol.ToolStateResult, error) {
	return changeTools(ctx, e, p.SessionID, "tool/applyState", p, func(r *tool.Registry) error {
		_, err := r.Apply(p.State)
		return err
	})
}

// SetMembership says which tools the model may call, from its next call on.
func (e *Engine) SetMembership(ctx context.Context, p *protocol.ToolSetMembershipParams) (*protocol.ToolStateResult, error) {
	return changeTools(ctx, e, p.SessionID, "tool/setMembership", p, func(r *tool.Registry) error {
		_, err := r.SetMembership(expected(p.Generation, r), p.Members)
		return err
	})
}

// SetAvailability says how far tools are open to the model, from its next call on.
func (e *Engine) SetAvailability(ctx context.Context, p *protocol.ToolSetAvailabilityParams) (*protocol.ToolStateResult, error) {
	if err := tool.CheckAvailability(p.Availability); err != nil {
		return nil, bad("/availability", "%v", err)
	}
	return changeTools(ctx, e, p.SessionID, "tool/setAvailability", p, func(r *tool.Registry) error {
		_, err := r.SetAvailability(expected(p.Generation, r), p.Names, p.Availability)
		return err
	})
}

// RefreshTools asks the sources of a session's tools again what they offer. One that fails stays as it was.
func (e *Engine) RefreshTools(ctx context.Context, p *protocol.SessionMutationParams) (*protocol.ToolStateResult, error) {
	return changeTools(ctx, e, p.SessionID, "tool/refresh", p, func(r *tool.Registry) error {
		if err := r.Refresh(); err != nil {
			e.Log.Warn("tools were not refreshed", "session", p.SessionID, "error", err)
		}
		return nil
	})
}

// expected is the generation that a request is about.
func expected(generation *int64, r *tool.Registry) int64 {
	if generation == nil {
		return r.Generation()
	}
	return *generation
}

// keyed are params with an idempotency key.
type keyed interface{ Key() string }

// changeTools changes the tools of a session. Nothing happens if they are the same then.
func changeTools(ctx context.Context, e *Engine, id protocol.SessionID, method string, p keyed, change func(*tool.Registry) error) (*protocol.ToolStateResult, error) {
	return mutate(ctx, e, id, method, p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.ToolStateResult, error) {
		t, err := st.openTools(st.row.Config)
		if err != nil {
			return nil, err
		}
		base := t.composer.Base()
		before := base.Checkpoint()
		generation := base.Generation()
		_, err = callPluginOnActor(st, func(context.Context) (struct{}, error) { return struct{}{}, change(base) })
		if err != nil {
			return nil, toolStateError(err)
		}
		if base.Generation() == generation {
			return &protocol.ToolStateResult{State: base.State(), Seq: st.row.Seq}, nil
		}
		result, err := st.saveTools(ctx, t, rc)
		if err != nil {
			base.Rollback(before)
			return nil, errors.Join(err, t.composer.Recompose(), st.rebuild(t))
		}
		return result, nil
	})
}

// saveTools commits what the base registry says, with the catalog that it makes.
func (st *state) saveTools(ctx context.Context, t *pluginSet, rc receipt) (*protocol.ToolStateResult, error) {
	if err := t.composer.Recompose(); err != nil {
		return nil, err
	}
	if err := st.rebuild(t); err != nil {
		return nil, err
	}
	after := t.composer.Base().State()
	c := st.change(persistence.Commit{})
	st.setTools(c, after)
	result := &protocol.ToolStateResult{State: after, Seq: c.Seq()}
	c.Receipt = rc.with(result)
	return result, st.commit(ctx, c)
}

// setTools adds to a change what the session decided about its tools.
func (st *state) setTools(c *change.Change, next protocol.ToolState) {
	c.Component = append(c.Component, persistence.Component{Name: componentTools, Body: encode(next)})
	c.TellOf(protocol.Event{Type: protocol.EventToolsChanged, Tools: &next})
	c.Then(func() { st.storedTools = next })
}

// toolStateError is a refused change as clients get it.
func toolStateError(err error) error {
	if stale, ok := errors.AsType[*tool.GenerationError](err); ok {
		return &GenerationError{Current: stale.Actual}
	}
	if _, ok := errors.AsType[*tool.ConflictError](err); ok || errors.Is(err, tool.ErrState) {
		return bad("/state", "%v", err)
	}
	return err
}
