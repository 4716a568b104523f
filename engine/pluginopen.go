package engine

import (
	"bytes"
	"context"
	"errors"

	"lashd/engine/authority"
	"lashd/engine/clientserver"
	"lashd/engine/plugin"
	"lashd/engine/workgroup"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// opening is the stored state with which a session's plugins are opened, read on the actor in one go. tryInstall
// compares head with the session's head afterwards: if history moved in between, plugins got a view that no longer
// holds.
type opening struct {
	plugin.Stored
	head    protocol.Head
	tools   protocol.ToolState
	overlay overlay
	guests  *clientserver.Set
}

// openTries bounds how often plugins are opened again because the session's history moved during the opening.
const openTries = 5

// install opens plugins for some settings and makes them those of the session. before is the tool state of the
// plugins that they replace, which they inherit; nil if there were none. installed reports whether the session has
// them. If it is false, nothing stays open and the caller may try again. An error with installed set means that
// the session has the new plugins but not all changes that follow from them are stored.
func (k *pluginLock) install(cfg protocol.Config, before *protocol.ToolState) (t *pluginSet, installed bool, err error) {
	for range openTries {
		if t, installed, err = k.tryInstall(cfg, before); !errors.Is(err, errHeadMoved) {
			break
		}
	}
	return t, installed, err
}

// tryInstall is one attempt of install. Plugins are built, get their stored state back, and are installed on the
// actor, provided that the head has not moved. It fails with errHeadMoved otherwise. Plugin code runs on this
// goroutine within the time limits of workgroup, never on the actor.
func (k *pluginLock) tryInstall(cfg protocol.Config, before *protocol.ToolState) (t *pluginSet, installed bool, err error) {
	plugins, err := workgroup.CallPlugin(k.ctx, k.eng.group, func(ctx context.Context) (*plugin.Session, error) {
		bc := buildContextOf(k.eng, k.row(), cfg)
		bc.Servers = k.owner.clientServers.Providers
		return k.eng.build(ctx, cfg, bc, sharedHost)
	})
	if err != nil {
		k.eng.group.LogPanic(err)
		return nil, false, err
	}
	defer func() {
		if !installed {
			err = errors.Join(err, k.eng.closePlugins(plugins))
		}
	}()
	with, err := onState(k.owner, func(_ context.Context, st *state) (*opening, error) { return newOpening(st, plugins) })
	if err != nil {
		return nil, false, err
	}
	if before != nil {
		with.tools = *before // decisions about tools that are gone stay as orphans
	}
	resumed, err := workgroup.CallPlugin(k.ctx, k.eng.group, func(ctx context.Context) (plugin.Resumed, error) { return plugins.Resume(ctx, with.Stored) })
	if err != nil {
		k.eng.group.LogPanic(err)
		return nil, false, err
	}
	if len(resumed.Unknown) > 0 {
		k.eng.Log.Warn("stored state belongs to plugins that the session does not have; it is kept", "session", k.owner.id, "plugins", resumed.Unknown)
	}
	if t, err = k.newSet(cfg, plugins, with); err != nil {
		return nil, false, err
	}
	_, err = onState(k.owner, func(ctx context.Context, st *state) (struct{}, error) {
		if st.row.Head != with.head {
			return struct{}{}, errHeadMoved
		}
		c := st.change(persistence.Commit{})
		st.stored.record(c, st.row.Head.Frame, resumed.Options)
		st.outside.Add(c, &st.row, plugins)
		if err := st.commitUnlessEmpty(ctx, c); err != nil {
			return struct{}{}, err
		}
		st.plugins.install(t)
		installed = true
		c = st.change(persistence.Commit{})
		if after := t.composer.Base().State(); before != nil && !bytes.Equal(encode(before.Tools), encode(after.Tools)) {
			st.stored.setTools(c, after)
		}
		if err := st.commitUnlessEmpty(ctx, c); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, st.monitors.declare(plugins)
	})
	return t, installed, err
}

// newOpening reads what plugins that were just built need from the session. It reads history and execution state
// only if a plugin uses them, as both can be large. It runs on the actor.
func newOpening(st *state, plugins *plugin.Session) (o *opening, err error) {
	o = &opening{head: st.row.Head, tools: st.stored.toolState(), overlay: st.overlay.current(), guests: st.clientServers.Load()}
	o.Recorded = st.stored.optionsOf(st.row.Head.Frame)
	o.Plugins, err = st.stored.pluginSnapshot(st.ctx, st.stored.pluginState(), "")
	if err == nil && plugins.Executes() {
		o.Execution, err = st.stored.execution(st.ctx, "")
	}
	if err == nil && plugins.NeedsView() {
		o.View, err = viewOf(st)
	}
	return o, err
}

// build builds plugins with the newest host of a directory. form is sharedHost, or Isolated for plugins that are
// only tried out. A host that is retired between the two steps is replaced by its successor.
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

// sharedHost is the form of a host for the plugins of sessions: a session id can be open only once.
func sharedHost(h *plugin.Host) *plugin.Host { return h }

// buildContextOf returns the context for building the plugins of a stored session. StateDir names lashd's own
// files, which plugins must not touch. The settings may be older than the session's: those of a turn that is resumed.
func buildContextOf(e *Engine, row *protocol.Session, cfg protocol.Config) plugin.BuildContext {
	return plugin.BuildContext{
		SessionID: row.ID, Parent: row.Relation.Parent, Authority: row.Authority, Cwd: row.Cwd, StateDir: e.StateDir,
		Sandbox: authority.SandboxOf(cfg.Approval, row.Authority.Ceiling),
	}
}

// viewOf returns the session at its newest commit, as plugins see it. A running turn is not part of it. It runs on
// the actor.
func viewOf(st *state) (*plugin.View, error) {
	past, err := st.history.messages()
	if err != nil {
		return nil, err
	}
	return viewWith(st, st.row.Head, past), nil
}

// viewAt returns the session as it will be after a restore to a node. It runs on the actor and reads the store.
func viewAt(st *state, id protocol.NodeID) (*plugin.View, error) {
	node, err := st.eng.node(st.ctx, id)
	if err != nil {
		return nil, err
	}
	at, err := st.eng.store.Place(st.ctx, id)
	if err != nil {
		return nil, err
	}
	past, err := st.history.messagesAt(at)
	if err != nil {
		return nil, err
	}
	head := st.row.Head
	head.Leaf, head.Generation, head.Frame = node.ID, node.Generation, node.Frame
	return viewWith(st, head, past), nil
}

// viewWith returns a view with the given head and history. The messages are shared and must not be changed.
func viewWith(st *state, head protocol.Head, past []*protocol.Message) *plugin.View {
	v := &plugin.View{Session: st.public(), Window: st.row.Config.Model.ContextWindow, TurnOptions: st.stored.optionsOf(head.Frame)}
	v.Session.Head, v.ModelName = head, st.eng.Models.Configured(st.row.Config.Model).Name
	return v.WithMessages(past)
}

// rehearse opens plugins privately with stored state, to find out whether they accept it. Nothing that the
// protocol records while they open is stored. The caller closes them.
func (e *Engine) rehearse(ctx context.Context, cfg protocol.Config, bc plugin.BuildContext, stored plugin.Stored) (*plugin.Session, error) {
	plugins, err := e.build(ctx, cfg, bc, (*plugin.Host).Isolated)
	if err != nil {
		return nil, err
	}
	if _, err := plugins.Resume(ctx, stored); err != nil {
		return nil, errors.Join(err, e.closePlugins(plugins))
	}
	return plugins, nil
}
