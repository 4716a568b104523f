package engine

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/engine/workgroup"
	"lashd/rpc/protocol"
)

// pluginSet is what plugins contribute to the session, built once it is needed.
type pluginSet struct {
	leases      leaseCounter
	plugins     *plugin.Session
	composer    *tool.Composer
	catalog     atomic.Pointer[tool.Catalog] // result of the newest refresh
	prompt      atomic.Pointer[string]       // prompt text of the overlay
	client      *clientTools
	settings    []byte        // encoded driver and options that it was built with; see settingsOf
	refusedHost *plugin.Host  // newer host whose plugins failed to open: not tried again; nil: none
	rendered    rendered      // owned by the running turn
	appends     chan struct{} // semaphore of size 1, held from the protocol's approval of nodes until they are stored

	preambleMu sync.Mutex
	preamble   preamble // of the catalog that was asked for most recently
}

// builtWith reports whether the plugins were built with the settings of a configuration.
func (t *pluginSet) builtWith(cfg protocol.Config) bool {
	return bytes.Equal(t.settings, settingsOf(cfg))
}

// hasAbandoned reports whether a call of a plugin was abandoned, also one that lists tools.
func (t *pluginSet) hasAbandoned() bool {
	return len(t.plugins.Abandoned()) > 0 || t.composer.Base().Stuck()
}

// newSet makes the catalog of plugins that were just opened.
func (k *pluginLock) newSet(cfg protocol.Config, plugins *plugin.Session, with *opening) (*pluginSet, error) {
	st := k.owner
	base, err := workgroup.CallPlugin(k.ctx, k.eng.group, func(context.Context) (*tool.Registry, error) {
		r := tool.NewRegistry(plugins.Without(), plugins.Sources(), with.tools)
		if err := r.Refused(); err != nil {
			return nil, err
		}
		with.guests.register(r, st.logSkippedServer)
		return r, nil
	})
	if err != nil {
		return nil, err
	}
	t := &pluginSet{plugins: plugins, client: &clientTools{session: st.session}, settings: settingsOf(cfg), appends: make(chan struct{}, 1)}
	t.composer = tool.NewComposer(tool.Composition{Base: base, Rules: tool.Rules{
		Contributors: []tool.Contributor{k.contributor(plugins)}, Access: tool.AccessOf(k.row().Authority),
	}})
	t.prompt.Store(&with.overlay.Prompt)
	if err := t.overlay(with.overlay, with.guests); err != nil {
		return nil, err
	}
	return t, k.refresh(t)
}

// contributor has the plugins leave tools out.
func (k *pluginLock) contributor(plugins *plugin.Session) tool.Contributor {
	st, authority := k.owner, k.row().Authority
	return func(l tool.Listing) ([]string, error) {
		ctx, cancel := workgroup.PluginContext(st.ctx)
		defer cancel()
		return plugins.Contribute(ctx, plugin.CatalogContext{SessionID: st.id, Manifests: l.Manifests, Authority: authority})
	}
}

func settingsOf(cfg protocol.Config) []byte {
	if len(cfg.Options) == 0 {
		return []byte(cfg.Driver)
	}
	return append([]byte(cfg.Driver+"\n"), encode(cfg.Options)...)
}

// closeSet closes plugins. Those that take too long are left alone until they return; the session's id is free from the beginning.
func (s *session) closeSet(t *pluginSet) {
	if err := s.eng.closePlugins(t.plugins); err != nil {
		s.eng.Log.Warn("plugins did not close", "session", s.id, "error", err)
	}
}

// closeLater closes plugins after their last use. Their id is free at once.
func (s *session) closeLater(t *pluginSet, free <-chan struct{}) {
	t.plugins.Leave()
	s.eng.group.GoCall(func() {
		<-free
		s.closeSet(t)
	})
}

// closePlugins closes plugins. Those that take too long are left alone until they return; the session's id is free from the beginning.
func (e *Engine) closePlugins(plugins *plugin.Session) error {
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

// preamble is the driver's part of the prompt for a catalog. The driver is asked once for each.
type preamble struct {
	catalog *tool.Catalog
	text    string
}

func (p *preamble) of(ctx context.Context, catalog *tool.Catalog, plugins *plugin.Session) (string, error) {
	if p.catalog == catalog {
		return p.text, nil
	}
	ctx, cancel := workgroup.PluginContext(ctx)
	defer cancel()
	text, err := plugins.Preamble(ctx, catalog)
	if err != nil {
		return "", err
	}
	*p = preamble{catalog, text}
	return text, nil
}

// preambleOf is the driver's preamble for a catalog of the session.
func (t *pluginSet) preambleOf(ctx context.Context, catalog *tool.Catalog, plugins *plugin.Session) (string, error) {
	t.preambleMu.Lock()
	known := t.preamble
	t.preambleMu.Unlock()
	text, err := known.of(ctx, catalog, plugins)
	t.preambleMu.Lock()
	defer t.preambleMu.Unlock()
	if err == nil {
		t.preamble = known
	}
	return text, err
}

// layers are what the session and its client add to the prompt.
func (t *pluginSet) layers(cfg protocol.Config) []plugin.Prompt {
	return []plugin.Prompt{
		{Slot: plugin.SlotGuidance, Priority: 90, Content: cfg.Prompt},
		{Slot: plugin.SlotRuntimeContext, Content: *t.prompt.Load()},
	}
}
