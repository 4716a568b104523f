package engine

import (
	"context"
	"errors"
	"fmt"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/engine/workgroup"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// newest tells whether the plugins are those of a host, or can not be and may stay.
func (t *pluginSet) newest(host *plugin.Host) bool {
	return t.plugins.From() == host || t.refusedHost == host && !t.plugins.From().Revoked()
}

// replace has the session take the plugins of another host, which are given what those that it has now keep. If they cannot be
// opened it goes on with those that it has, until there is yet another host; but without any, if a person has decided against some.
func (k *pluginLock) replace(cfg protocol.Config, host *plugin.Host) (*pluginSet, error) {
	old := k.owner.plugins.opened()
	if err := k.storeOutgoing(old.plugins); err != nil {
		return nil, err
	}
	before := old.composer.Base().State()
	old.plugins.Leave()
	next, installed, err := k.install(cfg, &before)
	switch {
	case installed:
		k.close(old)
		return next, err
	case old.plugins.From().Revoked():
		return nil, errors.Join(err, k.drop())
	}
	k.eng.Log.Error("new plugins did not open; the session keeps its previous ones", "session", k.owner.id, "error", err)
	old.refusedHost = host
	return old, errors.Join(old.plugins.Return(), k.refresh(old))
}

// storeOutgoing stores what plugins keep that are about to go. If that cannot be captured, what is stored counts.
func (k *pluginLock) storeOutgoing(plugins *plugin.Session) error {
	stored, err := onState(k.owner, func(_ context.Context, st *state) (*pluginState, error) { return st.stored.pluginState(), nil })
	if err != nil {
		return err
	}
	captured, _ := k.eng.captureAll(k.ctx, k.owner.id, plugins, stored)
	_, err = onState(k.owner, func(ctx context.Context, st *state) (struct{}, error) {
		c := st.change(persistence.Commit{})
		st.stored.keep(c, captured)
		return struct{}{}, st.commitUnlessEmpty(ctx, c)
	})
	if err != nil {
		return fmt.Errorf("store the state of plugins: %w", err)
	}
	return nil
}

// open gives the newest plugins for some settings, and looks what their catalog is by now. What the session has open stays if somebody
// works with it, or if nothing newer can be opened.
func (k *pluginLock) open(cfg protocol.Config) (*pluginSet, error) {
	t := k.owner.plugins.opened()
	if t != nil && t.leases.inUse() {
		return t, k.refresh(t)
	}
	// No common limit: plugins that are loaded for the first time have limits of their own.
	host, err := workgroup.CallPluginUntilDone(k.ctx, k.eng.group, func(ctx context.Context) (*plugin.Host, error) { return k.eng.Plugins.Host(ctx, k.row().Cwd) })
	switch {
	case err != nil:
		return nil, err
	case t == nil:
	case !t.builtWith(cfg):
		err = k.drop()
	case t.hasAbandoned():
		k.eng.Log.Warn("reopening the session's plugins: some did not return in time", "session", k.owner.id, "plugins", t.plugins.Abandoned())
		if err = k.storeOutgoing(t.plugins); err == nil {
			err = k.drop()
		}
	case t.newest(host):
		return t, k.refresh(t)
	default:
		return k.replace(cfg, host)
	}
	if err != nil {
		return nil, err
	}
	next, _, err := k.install(cfg, nil)
	return next, err
}

// current is the set that open would give without opening anything; nil: it would open something, or has to look.
func (k *pluginLock) current(ctx context.Context, cfg protocol.Config) *pluginSet {
	t := k.owner.plugins.opened()
	if t == nil || t.leases.inUse() {
		return t
	}
	if !t.builtWith(cfg) || t.hasAbandoned() {
		return nil
	}
	if host, err := k.eng.Plugins.Host(ctx, k.row().Cwd); err != nil || !t.newest(host) || host.Revoked() {
		return nil
	}
	return t
}

// refresh looks what the catalog is by now.
func (k *pluginLock) refresh(t *pluginSet) error {
	c, err := k.catalog(t)
	if err == nil {
		t.catalog.Store(c)
	}
	return err
}

func (k *pluginLock) catalog(t *pluginSet) (*tool.Catalog, error) {
	ctx, cancel := workgroup.PluginContext(k.ctx)
	defer cancel()
	sum, err := t.plugins.Fingerprint(ctx)
	if err != nil {
		return nil, err
	}
	view, err := t.composer.Catalog(sum)
	if err != nil {
		return nil, err
	}
	return view.Catalog, nil
}

// drop has the session be without plugins, and closes those that it has.
func (k *pluginLock) drop() error {
	t, err := onState(k.owner, func(_ context.Context, st *state) (*pluginSet, error) { return st.plugins.remove(), nil })
	if err == nil {
		k.close(t)
	}
	return err
}

// close closes plugins that the session does not have any more, once the last lease is back. Their id is free meanwhile.
func (k *pluginLock) close(t *pluginSet) {
	if t == nil {
		return
	}
	t.plugins.Leave()
	select {
	case <-t.leases.retire():
		// closeSet logs its failure.
		_, _ = workgroup.CallPlugin(k.ctx, k.eng.group, func(context.Context) (struct{}, error) { k.owner.closeSet(t); return struct{}{}, nil })
	default:
		k.owner.closeLater(t, t.leases.retire())
	}
}
