package engine

import (
	"context"
	"errors"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// openPlugins builds the session's plugins with what it was granted, gives them back what is stored of them, and records
// what the protocol makes of it. If any of that fails, nothing is open, and it can be tried again.
func (st *state) openPlugins(cfg protocol.Config) (*plugin.Session, error) {
	plugins, err := callPluginOnActor(st, func(ctx context.Context) (*plugin.Session, error) {
		return st.eng.build(ctx, cfg, st.buildContext(), itself)
	})
	if err != nil {
		st.eng.blame(err)
		return nil, err
	}
	stored, err := st.stored(plugins)
	if err != nil {
		return nil, errors.Join(err, st.eng.shut(plugins))
	}
	resumed, err := callPluginOnActor(st, func(ctx context.Context) (plugin.Resumed, error) { return st.eng.resume(ctx, plugins, stored) })
	if err != nil {
		st.eng.blame(err)
		return nil, err
	}
	if len(resumed.Unknown) > 0 {
		st.eng.Log.Warn("state is kept of plugins that are not there", "session", st.id, "plugins", resumed.Unknown)
	}
	if err := st.record(resumed.Options); err != nil {
		return nil, errors.Join(err, st.eng.shut(plugins))
	}
	return plugins, nil
}

// build builds plugins with the host of a directory as it is now, in the form that is wanted.
func (e *Engine) build(ctx context.Context, cfg protocol.Config, bc plugin.BuildContext, form func(*plugin.Host) *plugin.Host) (*plugin.Session, error) {
	for {
		host, err := e.Plugins.Host(ctx, bc.Cwd)
		if err != nil {
			return nil, err
		}
		plugins, err := form(host).Open(ctx, cfg.Driver, cfg.Options, bc)
		if !errors.Is(err, plugin.ErrRetired) {
			return plugins, err
		}
	}
}

func itself(h *plugin.Host) *plugin.Host { return h }

func (st *state) buildContext() plugin.BuildContext {
	return plugin.BuildContext{
		SessionID: st.id, Parent: st.row.Relation.Parent, Authority: st.row.Authority, Cwd: st.row.Cwd, StateDir: st.eng.StateDir,
	}
}

// stored is what plugins that were just built are given.
func (st *state) stored(plugins *plugin.Session) (plugin.Stored, error) {
	stored := plugin.Stored{Recorded: st.recorded.of(st.row.Head.Frame)}
	var err error
	if st.storedPlugins != nil {
		stored.Plugins, err = st.thaw(st.storedPlugins, "")
	}
	if err == nil && plugins.Executes() {
		stored.Execution, err = st.executed("")
	}
	if err == nil && plugins.Looks() {
		stored.View, err = st.view()
	}
	return stored, err
}

// view is the session as it is settled.
func (st *state) view() (*plugin.View, error) {
	past, err := st.past()
	if err != nil {
		return nil, err
	}
	v := &plugin.View{
		Session: st.public(), Window: st.row.Config.Model.ContextWindow, TurnOptions: st.recorded.of(st.row.Head.Frame),
	}
	return v.Holding(past), nil
}

// viewAt is the session as it will be when it is at a node again.
func (st *state) viewAt(id protocol.NodeID) (*plugin.View, error) {
	node, err := st.eng.node(st.ctx, id)
	if err != nil {
		return nil, err
	}
	at, err := st.eng.store.Place(st.ctx, id)
	if err != nil {
		return nil, err
	}
	past, err := st.pastAt(at)
	if err != nil {
		return nil, err
	}
	v := &plugin.View{Session: st.public(), Window: st.row.Config.Model.ContextWindow, TurnOptions: st.recorded.of(node.Frame)}
	v.Session.Head.Leaf, v.Session.Head.Generation, v.Session.Head.Frame = node.ID, node.Generation, node.Frame
	return v.Holding(past), nil
}

// rehearse opens plugins where nobody else knows of them, as those of a session will be opened. What the protocol would have
// recorded then is not.
func (e *Engine) rehearse(ctx context.Context, cfg protocol.Config, bc plugin.BuildContext, stored plugin.Stored) (*plugin.Session, error) {
	plugins, err := e.build(ctx, cfg, bc, (*plugin.Host).Isolated)
	if err == nil {
		_, err = e.resume(ctx, plugins, stored)
	}
	return plugins, err
}

// resume has plugins that nobody else knows yet take back what is stored, and closes them if that fails.
func (e *Engine) resume(ctx context.Context, plugins *plugin.Session, stored plugin.Stored) (plugin.Resumed, error) {
	r, err := plugins.Resume(ctx, stored)
	if err != nil {
		return r, errors.Join(err, e.shut(plugins))
	}
	return r, nil
}
