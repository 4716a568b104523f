package engine

import (
	"bytes"
	"context"
	"errors"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// pluginSet is what plugins contribute to the session, built once it is needed.
type pluginSet struct {
	lent     lent
	plugins  *plugin.Session
	composer *tool.Composer
	catalog  *tool.Catalog
	client   *clientTools
	settings []byte        // the driver and the plugins' options that it was built with
	refused  *plugin.Host  // with which it could not be built; nil: there is none
	preamble preamble      // of catalog
	rendered rendered      // the running turn owns it
	appends  chan struct{} // holds one while nodes of which the protocol was told are being stored
}

// openTools builds what plugins contribute, on first use and whenever their options or the plugins themselves have changed,
// unless somebody still works with what was built before.
func (st *state) openTools(cfg protocol.Config) (*pluginSet, error) {
	if st.plugins != nil && st.inUse() {
		return st.plugins, st.rebuild(st.plugins)
	}
	t, err := st.openNewest(cfg)
	if err == nil {
		st.newestPlugins = t
	}
	return t, err
}

func (st *state) openNewest(cfg protocol.Config) (*pluginSet, error) {
	settings := settingsOf(cfg)
	// However long plugins take that are loaded for the first time: each has its own limit.
	host, err := serveWhile(st.ctx, st, func(ctx context.Context) (*plugin.Host, error) { return st.eng.Plugins.Host(ctx, st.row.Cwd) })
	switch {
	case err != nil:
		return nil, err
	case st.plugins == nil:
	case !bytes.Equal(st.plugins.settings, settings):
		st.dropTools()
	case st.plugins.left():
		if err := st.giveUp(st.plugins); err != nil {
			return nil, err
		}
	case st.plugins.newest(host):
		return st.plugins, st.rebuild(st.plugins)
	default:
		return st.move(cfg, host)
	}
	t, err := st.newTools(cfg, settings, st.storedTools)
	if err != nil {
		return nil, err
	}
	st.plugins = t
	return t, st.declareMonitors(t.plugins)
}

// opened is openTools for whoever needs nothing newer than what the message that the actor serves has opened already.
func (st *state) opened(cfg protocol.Config) (*pluginSet, error) {
	t := st.newestPlugins
	if t == nil || t != st.plugins || t.left() || t.plugins.From().Revoked() || !bytes.Equal(t.settings, settingsOf(cfg)) {
		return st.openTools(cfg)
	}
	return t, nil
}

// left tells whether a plugin was left alone at work, or while it was asked for its tools.
func (t *pluginSet) left() bool { return len(t.plugins.Left()) > 0 || t.composer.Base().Stuck() }

// giveUp lets go of plugins of which one was left alone at work: nobody knows what state that is in. The others' is stored.
func (st *state) giveUp(t *pluginSet) error {
	st.eng.Log.Warn("the session's plugins are opened anew, because some were left alone at work", "session", st.id, "plugins", t.plugins.Left())
	if err := st.keepOutgoing(t.plugins); err != nil {
		return err
	}
	st.dropTools()
	return nil
}

// newTools opens plugins, and makes the catalog of them, with what was decided about tools.
func (st *state) newTools(cfg protocol.Config, settings []byte, decided protocol.ToolState) (*pluginSet, error) {
	plugins, err := st.openPlugins(cfg)
	if err != nil {
		return nil, err
	}
	t := &pluginSet{plugins: plugins, client: &clientTools{session: st.session}, settings: settings, appends: make(chan struct{}, 1)}
	if err := st.fill(t, decided); err != nil {
		return nil, errors.Join(err, st.eng.shut(plugins))
	}
	return t, nil
}

// fill makes the catalog of plugins that have just been built.
func (st *state) fill(t *pluginSet, decided protocol.ToolState) error {
	guests := st.guests
	base, err := callPluginOnActor(st, func(context.Context) (*tool.Registry, error) {
		r := tool.NewRegistry(t.plugins.Without(), t.plugins.Sources(), decided)
		if err := r.Refused(); err != nil {
			return nil, err
		}
		guests.register(r, st.leftOut)
		return r, nil
	})
	if err != nil {
		return err
	}
	t.composer = tool.NewComposer(tool.Composition{Base: base, Rules: tool.Rules{
		Contributors: []tool.Contributor{st.contributor(t.plugins)}, Access: tool.AccessOf(st.row.Authority),
	}})
	if err := t.overlay(st.overlay, st.guests); err != nil {
		return err
	}
	return st.rebuild(t)
}

// contributor has the plugins leave tools out.
func (st *state) contributor(plugins *plugin.Session) tool.Contributor {
	id, authority := st.id, st.row.Authority
	return func(l tool.Listing) ([]string, error) {
		ctx, cancel := context.WithTimeoutCause(st.ctx, pluginPatience, ErrSlowPlugin)
		defer cancel()
		return plugins.Contribute(ctx, plugin.CatalogContext{SessionID: id, Manifests: l.Manifests, Authority: authority})
	}
}

func settingsOf(cfg protocol.Config) []byte {
	if len(cfg.Options) == 0 {
		return []byte(cfg.Driver)
	}
	return append([]byte(cfg.Driver+"\n"), encode(cfg.Options)...)
}

// dropTools lets go of the plugins.
func (st *state) dropTools() {
	if st.plugins != nil {
		st.drop(st.plugins)
		st.plugins = nil
	}
}

// drop closes plugins once the last lease is back; the session's id is free meanwhile.
func (st *state) drop(t *pluginSet) {
	plugins, free := t.plugins, t.lent.retire()
	closing := func() {
		if err := st.eng.shut(plugins); err != nil {
			st.eng.Log.Warn("plugins did not close", "session", st.id, "error", err)
		}
	}
	select {
	case <-free:
		if st.ctx.Err() != nil {
			st.soon(closing)
			break
		}
		_, _ = callPluginOnActor(st, func(context.Context) (struct{}, error) { closing(); return struct{}{}, nil })
	default:
		plugins.Leave()
		st.eng.goCall(func() {
			<-free
			closing()
		})
	}
}

// soon waits a moment for the last work of a state that was given up. The next one does not wait longer, but the engine does.
func (st *state) soon(work func()) {
	done := make(chan struct{})
	st.eng.actors.Go(func() {
		defer close(done)
		work()
	})
	moment := time.NewTimer(refusalDelay)
	defer moment.Stop()
	select {
	case <-done:
	case <-moment.C:
	}
}

// shut closes plugins. Those that take too long are left alone until they return; the session's id is free from the beginning.
func (e *Engine) shut(plugins *plugin.Session) error {
	plugins.Leave()
	return plugins.Close()
}

// overlay puts a client's tools over those of the plugins. Those of its servers stay, whatever else goes.
func (t *pluginSet) overlay(o overlay, g *clientServers) error {
	t.client.tools.Store(&o.Tools)
	next := tool.Overlay{WithoutBase: o.WithoutBase, Keep: g.sources()}
	if len(o.Tools) > 0 {
		next.Sources = []tool.Source{{ID: "client:" + string(o.ClientID), Provider: t.client}}
	}
	_, err := t.composer.SetOverlay(next)
	return err
}

// rebuild looks what the catalog is by now.
func (st *state) rebuild(t *pluginSet) error {
	view, err := callPluginOnActor(st, func(ctx context.Context) (*tool.View, error) {
		sum, err := t.plugins.Fingerprint(ctx)
		if err != nil {
			return nil, err
		}
		return t.composer.Catalog(sum)
	})
	if err != nil {
		return err
	}
	t.catalog = view.Catalog
	return nil
}

// preamble is the driver's part of the prompt for a catalog. The driver is asked once for each.
type preamble struct {
	catalog *tool.Catalog
	text    string
}

func (p *preamble) of(ctx context.Context, catalog *tool.Catalog, plugins *plugin.Session) (string, error) {
	if p.catalog == catalog {
		return p.text, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, pluginPatience, ErrSlowPlugin)
	defer cancel()
	text, err := plugins.Preamble(ctx, catalog)
	if err != nil {
		return "", err
	}
	*p = preamble{catalog, text}
	return text, nil
}

// preamble is that of the catalog as it is.
func (st *state) preamble(t *pluginSet) (string, error) {
	if t.preamble.catalog == t.catalog {
		return t.preamble.text, nil
	}
	next, err := callPluginOnActor(st, func(ctx context.Context) (p preamble, err error) {
		_, err = p.of(ctx, t.catalog, t.plugins)
		return p, err
	})
	if err == nil {
		t.preamble = next
	}
	return next.text, err
}

// layers are what the session and its client add to the prompt.
func (st *state) layers(cfg protocol.Config) []plugin.Prompt {
	return []plugin.Prompt{
		{Slot: plugin.SlotGuidance, Priority: 90, Content: cfg.Prompt},
		{Slot: plugin.SlotRuntimeContext, Content: st.overlay.Prompt},
	}
}
