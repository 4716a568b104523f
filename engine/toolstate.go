package engine

import (
	"context"
	"errors"

	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/engine/tool"
	"lashd/engine/workgroup"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Tools is the API of a session's tools, for clients and for plugins. Its methods open the
// session's plugins if needed and hold their lock, so they may take as long as plugin code does. A
// running turn is not disturbed: its next model call gets the changed tools.
type Tools struct{ eng *Engine }

// List lists all tools that a session knows, whether the model may call them or not, with the
// generation of the settings.
func (ts *Tools) List(ctx context.Context, p *protocol.SessionParams) (*protocol.ToolListResult, error) {
	return lockedPlugins(ctx, ts.eng, p.SessionID, func(k *pluginLock) (*protocol.ToolListResult, error) {
		t, err := k.open(k.row().Config)
		if err != nil {
			return nil, err
		}
		records, err := workgroup.CallPlugin(k.ctx, ts.eng.group, func(context.Context) ([]protocol.ToolRecord, error) { return t.catalog.Load().Records(), nil })
		return &protocol.ToolListResult{Data: list(records), Generation: t.composer.Base().Generation()}, err
	})
}

// State returns the session's tool settings: members, availability and their generation.
func (ts *Tools) State(ctx context.Context, p *protocol.SessionParams) (*protocol.ToolStateResult, error) {
	return lockedPlugins(ctx, ts.eng, p.SessionID, func(k *pluginLock) (*protocol.ToolStateResult, error) {
		t, err := k.open(k.row().Config)
		if err != nil {
			return nil, err
		}
		return &protocol.ToolStateResult{State: t.composer.Base().State(), Seq: k.row().Seq}, nil
	})
}

// ApplyState replaces all tool settings. It fails with *GenerationError if they changed since the
// client read them.
func (ts *Tools) ApplyState(ctx context.Context, p *protocol.ToolApplyStateParams) (*protocol.ToolStateResult, error) {
	return changeTools(ctx, ts.eng, p.SessionID, "tool/applyState", p, func(r *tool.Registry) error {
		_, err := r.Apply(p.State)
		return err
	})
}

// SetMembership sets which tools the model may call, beginning with its next call. It fails with
// *GenerationError if p.Generation is set and the settings changed since.
func (ts *Tools) SetMembership(ctx context.Context, p *protocol.ToolSetMembershipParams) (*protocol.ToolStateResult, error) {
	return changeTools(ctx, ts.eng, p.SessionID, "tool/setMembership", p, func(r *tool.Registry) error {
		_, err := r.SetMembership(expected(p.Generation, r), p.Members)
		return err
	})
}

// SetAvailability sets how tools are offered to the model, beginning with its next call. Errors are
// those of SetMembership; an unknown availability is a *param.Error.
func (ts *Tools) SetAvailability(ctx context.Context, p *protocol.ToolSetAvailabilityParams) (*protocol.ToolStateResult, error) {
	if err := tool.CheckAvailability(p.Availability); err != nil {
		return nil, param.Bad("/availability", "%v", err)
	}
	return changeTools(ctx, ts.eng, p.SessionID, "tool/setAvailability", p, func(r *tool.Registry) error {
		_, err := r.SetAvailability(expected(p.Generation, r), p.Names, p.Availability)
		return err
	})
}

// Refresh asks the sources of tools, such as MCP servers, for their current tools. A source that
// fails keeps its old tools, and the failure is only logged.
func (ts *Tools) Refresh(ctx context.Context, p *protocol.SessionMutationParams) (*protocol.ToolStateResult, error) {
	return changeTools(ctx, ts.eng, p.SessionID, "tool/refresh", p, func(r *tool.Registry) error {
		if err := r.Refresh(); err != nil {
			ts.eng.Log.Warn("cannot refresh tools of some sources", "session", p.SessionID, "error", err)
		}
		return nil
	})
}

// expected returns the generation that a request expects: the current one if the request names
// none.
func expected(generation *int64, r *tool.Registry) int64 {
	if generation == nil {
		return r.Generation()
	}
	return *generation
}

// keyed is implemented by params with an idempotency key.
type keyed interface{ Key() string }

// changeTools changes the tool settings of a session and commits them, under the lock of the
// plugins. change runs beside the actor, because sources of tools are plugin code. If the settings
// stay the same, nothing is stored. If the commit fails, the registry is rolled back and the
// catalog is built again from it.
func changeTools(ctx context.Context, e *Engine, id protocol.SessionID, method string, p keyed, change func(*tool.Registry) error) (*protocol.ToolStateResult, error) {
	return mutatePlugins(ctx, e, id, method, p.Key(), p, func(k *pluginLock, rc receipt.Request) (*protocol.ToolStateResult, error) {
		t, err := k.open(k.row().Config)
		if err != nil {
			return nil, err
		}
		base := t.composer.Base()
		before := base.Checkpoint()
		generation := base.Generation()
		_, err = workgroup.CallPlugin(k.ctx, e.group, func(context.Context) (struct{}, error) { return struct{}{}, change(base) })
		if err != nil {
			return nil, toolStateError(err)
		}
		if base.Generation() == generation {
			return &protocol.ToolStateResult{State: base.State(), Seq: k.row().Seq}, nil
		}
		result, err := k.saveTools(t, rc)
		if err != nil {
			base.Rollback(before)
			return nil, errors.Join(err, t.composer.Recompose(), k.refresh(t))
		}
		return result, nil
	})
}

// saveTools commits the settings of the base registry with their event and receipt. The new catalog
// takes effect together with the commit, so a model call sees either the old tools or the new ones.
func (k *pluginLock) saveTools(t *pluginSet, rc receipt.Request) (*protocol.ToolStateResult, error) {
	if err := t.composer.Recompose(); err != nil {
		return nil, err
	}
	catalog, err := k.catalog(t)
	if err != nil {
		return nil, err
	}
	after := t.composer.Base().State()
	return onState(k.owner, func(ctx context.Context, st *state) (*protocol.ToolStateResult, error) {
		c := st.change(persistence.Commit{})
		st.stored.setTools(c, after)
		result := &protocol.ToolStateResult{State: after, Seq: c.Seq()}
		c.Receipt = rc.With(result)
		c.Then(func() { t.catalog.Store(catalog) })
		return result, st.commit(ctx, c)
	})
}

// toolStateError maps errors of the registry to those that clients get.
func toolStateError(err error) error {
	if stale, ok := errors.AsType[*tool.GenerationError](err); ok {
		return &GenerationError{Current: stale.Actual}
	}
	if _, ok := errors.AsType[*tool.ConflictError](err); ok || errors.Is(err, tool.ErrState) {
		return param.Bad("/state", "%v", err)
	}
	return err
}
