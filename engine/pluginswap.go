package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"lashd/engine/plugin"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// renew has the session take the newest plugins, if nothing works with those that it has. Why that fails, whoever needs them
// finds out.
func (st *state) renew() {
	if st.plugins != nil {
		_, _ = st.opened(st.row.Config)
	}
}

// newest tells whether the plugins are those of a host, or can not be and may stay.
func (t *pluginSet) newest(host *plugin.Host) bool {
	return t.plugins.From() == host || t.refused == host && !t.plugins.From().Revoked()
}

// move has the session take the plugins of another host, which are given what those that it has now keep. If they cannot be
// opened it goes on with those that it has, until there is yet another host; but without any, if a person has decided against some.
func (st *state) move(cfg protocol.Config, host *plugin.Host) (*pluginSet, error) {
	old := st.plugins
	if err := st.keepOutgoing(old.plugins); err != nil {
		return nil, err
	}
	before := old.composer.Base().State() // those that vanish are orphans then
	old.plugins.Leave()
	next, err := st.newTools(cfg, old.settings, before)
	if err != nil && old.plugins.From().Revoked() {
		st.dropTools()
		return nil, err
	}
	if err != nil {
		st.eng.Log.Error("the session goes on with the plugins that it had", "session", st.id, "error", err)
		old.refused = host
		return old, errors.Join(old.plugins.Return(), st.rebuild(old))
	}
	st.plugins = next
	st.drop(old)
	if err := st.tellMoved(before, next.composer.Base().State()); err != nil {
		return next, err
	}
	return next, st.declareMonitors(next.plugins)
}

// keepOutgoing stores what plugins keep that are about to go. If that cannot be captured, what is stored counts.
func (st *state) keepOutgoing(plugins *plugin.Session) error {
	stored := st.storedPlugins
	k, err := callPluginOnActor(st, func(ctx context.Context) (*captured, error) {
		k, _ := st.eng.captureAll(ctx, st.id, plugins, stored)
		return k, nil
	})
	if err != nil {
		return err
	}
	c := st.change(persistence.Commit{})
	st.keep(c, k)
	if len(c.Component) == 0 {
		return nil
	}
	if err := st.commit(st.ctx, c); err != nil {
		return fmt.Errorf("what plugins keep: %w", err)
	}
	return nil
}

// tellMoved stores what has become of the tools, if they are others now, and tells it.
func (st *state) tellMoved(before, after protocol.ToolState) error {
	if bytes.Equal(encode(before.Tools), encode(after.Tools)) {
		return nil
	}
	c := st.change(persistence.Commit{})
	st.setTools(c, after)
	return st.commit(st.ctx, c)
}
