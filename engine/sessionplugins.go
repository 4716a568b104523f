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

// toolbox is what plugins contribute to the session, built once it is needed.
type toolbox struct {
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
func (st *state) openTools(cfg protocol.Config) (*toolbox, error) {
	if st.tools != nil && st.inUse() {
		return st.tools, st.rebuild(st.tools)
	}
	t, err := st.openNewest(cfg)
	if err == nil {
		st.fresh = t
	}
	return t, err
}

func (st *state) openNewest(cfg protocol.Config) (*toolbox, error) {
	settings := settingsOf(cfg)
	// However long plugins take that are loaded for the first time: each has its own limit.
	host, err := serving(st.ctx, st, func(ctx context.Context) (*plugin.Host, error) { return st.eng.Plugins.Host(ctx, st.row.Cwd) })
	switch {
	case err != nil:
		return nil, err
	case st.tools == nil:
	case !bytes.Equal(st.tools.settings, settings):
		st.dropTools()
	case st.tools.left():
		if err := st.giveUp(st.tools); err != nil {
			return nil, err
		}
	case st.tools.newest(host):
		return st.tools, st.rebuild(st.tools)
	default:
		return st.move(cfg, host)
	}
	t, err := st.newTools(cfg, settings, st.saved)
	if err != nil {
		return nil, err
	}
	st.tools = t
	return t, st.declareMonitors(t.plugins)
}

// opened is openTools for whoever needs nothing newer than what the message that the actor serves has opened already.
func (st *state) opened(cfg protocol.Config) (*toolbox, error) {
	t := st.fresh
	if t == nil || t != st.tools || t.left() || t.plugins.From().Revoked() || !bytes.Equal(t.settings, settingsOf(cfg)) {
		return st.openTools(cfg)
	}
	return t, nil
}

// left tells whether a plugin was left alone at work, or while it was asked for its tools.
func (t *toolbox) left() bool { return len(t.plugins.Left()) > 0 || t.composer.Base().Stuck() }

// giveUp lets go of plugins of which one was left alone at work: nobody knows what state that is in. The others' is stored.
func (st *state) giveUp(t *toolbox) error {
	st.eng.Log.Warn("the session's plugins are opened anew, because some were left alone at work", "session", st.id, "plugins", t.plugins.Left())
	if err := st.keepOutgoing(t.plugins); err != nil {
		return err
	}
	st.dropTools()
	return nil
}

// newTools opens plugins, and makes the catalog of them, with what was decided about tools.
func (st *state) newTools(cfg protocol.Config, settings []byte, decided protocol.ToolState) (*toolbox, error) {
	plugins, err := st.openPlugins(cfg)
	if err != nil {
		return nil, err
	}
	t := &toolbox{plugins: plugins, client: &clientTools{session: st.session}, settings: settings, appends: make(chan struct{}, 1)}
	if err := st.fill(t, decided); err != nil {
		return nil, errors.Join(err, st.eng.shut(plugins))
	}
	return t, nil
}

// fill makes the catalog of plugins that have just been built.
func (st *state) fill(t *toolbox, decided protocol.ToolState) error {
	guests := st.guests
	base, err := meanwhile(st, func(context.Context) (*tool.Registry, error) {
		r := tool.NewRegistry(t.plugins.Without(), t.plugins.Sources(), decided)
		if err := r.Refused(); err != nil {
			return nil, err
		}
		guests.seat(r, st.leftOut)
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
	if st.tools != nil {
		st.drop(st.tools)
		st.tools = nil
	}
}

// drop closes plugins once the last lease is back; the session's id is free meanwhile.
func (st *state) drop(t *toolbox) {
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
		_, _ = meanwhile(st, func(context.Context) (struct{}, error) { closing(); return struct{}{}, nil })
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
func (t *toolbox) overlay(o overlay, g *guests) error {
	t.client.tools.Store(&o.Tools)
	next := tool.Overlay{WithoutBase: o.WithoutBase, Keep: g.sources()}
	if len(o.Tools) > 0 {
		next.Sources = []tool.Source{{ID: "client:" + string(o.ClientID), Provider: t.client}}
	}
	_, err := t.composer.SetOverlay(next)
	return err
}

// rebuild looks what the catalog is by now.
func (st *state) rebuild(t *toolbox) error {
	view, err := meanwhile(st, func(ctx context.Context) (*tool.View, error) {
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
func (st *state) preamble(t *toolbox) (string, error) {
	if t.preamble.catalog == t.catalog {
		return t.preamble.text, nil
	}
	next, err := meanwhile(st, func(ctx context.Context) (p preamble, err error) {
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
