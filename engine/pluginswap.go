package engine

import (
	"context"
	"errors"
	"fmt"

	"lashd/engine/plugin"
	"lashd/engine/pluginstate"
	"lashd/engine/tool"
	"lashd/engine/workgroup"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// newest reports whether the set may stay although host is the newest. That is so if it comes from host, or if
// plugins of host failed to open and trust in the old ones was not revoked.
func (t *pluginSet) newest(host *plugin.Host) bool {
	return t.plugins.From() == host || t.refusedHost == host && !t.plugins.From().Revoked()
}

// replace replaces the session's plugins by those of another host, which inherit their state and tool decisions.
// If the new ones do not open, the session keeps the old ones until the next change of plugins. If trust in old
// ones was revoked, it has no plugins then.
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

// storeOutgoing stores the state of plugins that are about to be replaced. If a state cannot be captured,
// the error is logged and the state that is already stored stays.
func (k *pluginLock) storeOutgoing(plugins *plugin.Session) error {
	stored, err := onState(k.owner, func(_ context.Context, st *state) (*pluginstate.State, error) { return st.stored.pluginState(), nil })
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

// open returns plugins for some settings, with a refreshed catalog. It keeps the open set while a lease uses it,
// so one turn never sees two sets. Otherwise it replaces a set with other settings, abandoned calls, or an
// outdated host.
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

// current returns the set that open would return without opening anything. Nil means that open has work to do. It
// calls no plugin of the session.
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

// refresh computes the catalog again and publishes it to readers. A lease keeps the catalog with which it began;
// the running turn reads the published one at its next iteration.
func (k *pluginLock) refresh(t *pluginSet) error {
	c, err := k.catalog(t)
	if err == nil {
		t.catalog.Store(c)
	}
	return err
}

// catalog computes the catalog of a set from the fingerprint of its plugins; an unchanged fingerprint returns the
// same catalog. It calls plugins, within their time limit.
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

// drop removes the session's plugins and closes them. The next use opens new ones with the stored state, so
// callers that need unsaved state call storeOutgoing first.
func (k *pluginLock) drop() error {
	t, err := onState(k.owner, func(_ context.Context, st *state) (*pluginSet, error) { return st.plugins.remove(), nil })
	if err == nil {
		k.close(t)
	}
	return err
}

// close closes plugins that the session no longer has, after their last lease is released. If none is out it waits
// for the close, so that new plugins do not overlap with the old ones. A nil set is ignored.
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
