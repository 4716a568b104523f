package engine

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"

	"lashd/engine/clientserver"
	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/engine/workgroup"
	"lashd/rpc/protocol"
)

// pluginSet is one opened set of plugins of a session, with the tools and prompts that they contribute.
// sessionPlugins refers to the current set; older sets live until their last lease is released. The holder of the
// plugin lock builds and changes it. Fields that others read without the lock are atomic or have a mutex of their
// own.
type pluginSet struct {
	leases      leaseCounter
	plugins     *plugin.Session
	composer    *tool.Composer
	catalog     atomic.Pointer[tool.Catalog] // result of the newest refresh
	prompt      atomic.Pointer[string]       // prompt text of the overlay
	client      *clientTools
	settings    []byte        // encoded driver and options that it was built with; see settingsOf
	reads       bool          // it was built for a session whose commands only read
	refusedHost *plugin.Host  // newer host whose plugins failed to open: not tried again; nil: none
	rendered    rendered      // owned by the running turn
	appends     chan struct{} // semaphore of size 1, held from the protocol's approval of nodes until they are stored

	preambleMu sync.Mutex
	preamble   preamble // of the catalog that was asked for most recently
}

// builtWith reports whether the set was built with the driver and options of a configuration, and for commands that only read or not,
// as there. Other settings need no new plugins.
func (t *pluginSet) builtWith(cfg protocol.Config) bool {
	return t.reads == onlyReads(cfg) && bytes.Equal(t.settings, settingsOf(cfg))
}

// onlyReads reports whether the commands of a session with these settings change nothing.
func onlyReads(cfg protocol.Config) bool { return cfg.Approval.Sandbox == protocol.SandboxReadOnly }

// hasAbandoned reports whether a call into these plugins did not return in time, including a call that lists
// tools. Such plugins are replaced before the next use.
func (t *pluginSet) hasAbandoned() bool {
	return len(t.plugins.Abandoned()) > 0 || t.composer.Base().Stuck()
}

// newSet builds the tools of plugins that were just opened: their registry with the stored tool decisions, the
// servers of the session's client, and its overlay.
func (k *pluginLock) newSet(cfg protocol.Config, plugins *plugin.Session, with *opening) (*pluginSet, error) {
	st := k.owner
	base, err := workgroup.CallPlugin(k.ctx, k.eng.group, func(context.Context) (*tool.Registry, error) {
		r := tool.NewRegistry(plugins.Without(), plugins.Sources(), with.tools)
		if err := r.Refused(); err != nil {
			return nil, err
		}
		with.guests.Register(r, st.logSkippedServer)
		return r, nil
	})
	if err != nil {
		return nil, err
	}
	t := &pluginSet{plugins: plugins, client: &clientTools{session: st.session}, settings: settingsOf(cfg), reads: onlyReads(cfg), appends: make(chan struct{}, 1)}
	t.composer = tool.NewComposer(tool.Composition{Base: base, Rules: tool.Rules{
		Contributors: []tool.Contributor{k.contributor(plugins)}, Access: tool.AccessOf(k.row().Authority),
	}})
	t.prompt.Store(&with.overlay.Prompt)
	if err := t.overlay(with.overlay, with.guests); err != nil {
		return nil, err
	}
	return t, k.refresh(t)
}

// contributor lets the plugins remove tools from the catalog each time it is computed.
func (k *pluginLock) contributor(plugins *plugin.Session) tool.Contributor {
	st, authority := k.owner, k.row().Authority
	return func(l tool.Listing) ([]string, error) {
		ctx, cancel := workgroup.PluginContext(st.ctx)
		defer cancel()
		return plugins.Contribute(ctx, plugin.CatalogContext{SessionID: st.id, Manifests: l.Manifests, Authority: authority})
	}
}

// settingsOf encodes the settings that decide which plugins are built, for comparisons only.
func settingsOf(cfg protocol.Config) []byte {
	if len(cfg.Options) == 0 {
		return []byte(cfg.Driver)
	}
	return append([]byte(cfg.Driver+"\n"), encode(cfg.Options)...)
}

// closeSet closes plugins and logs a failure. The id of the session is free at once; closing takes at most the
// time limit for plugins, after which they are abandoned.
func (s *session) closeSet(t *pluginSet) {
	if err := s.eng.closePlugins(t.plugins); err != nil {
		s.eng.Log.Warn("plugins did not close", "session", s.id, "error", err)
	}
}

// closeLater closes plugins after free is closed, in the background. The session's id is free at once, so its next
// plugins can open.
func (s *session) closeLater(t *pluginSet, free <-chan struct{}) {
	t.plugins.Leave()
	s.eng.group.GoCall(func() {
		<-free
		s.closeSet(t)
	})
}

// closePlugins frees the session's id and closes plugins. A plugin that takes too long is abandoned.
func (e *Engine) closePlugins(plugins *plugin.Session) error {
	plugins.Leave()
	return plugins.Close()
}

// overlay puts a client's tools over those of the plugins and keeps the tools of its servers. WithoutBase hides
// the plugins' tools.
func (t *pluginSet) overlay(o overlay, g *clientserver.Set) error {
	t.client.tools.Store(&o.Tools)
	next := tool.Overlay{WithoutBase: o.WithoutBase, Keep: g.Sources()}
	if len(o.Tools) > 0 {
		next.Sources = []tool.Source{{ID: "client:" + string(o.ClientID), Provider: t.client}}
	}
	_, err := t.composer.SetOverlay(next)
	return err
}

// preamble caches the driver's part of the prompt for one catalog, as computing it calls the driver. The zero
// value is an empty cache. It is not safe for concurrent use.
type preamble struct {
	catalog *tool.Catalog
	plugin.Preamble
}

// of returns the preamble for a catalog, from the cache or from the driver. Catalogs are compared by identity.
func (p *preamble) of(ctx context.Context, catalog *tool.Catalog, plugins *plugin.Session) (plugin.Preamble, error) {
	if p.catalog == catalog {
		return p.Preamble, nil
	}
	ctx, cancel := workgroup.PluginContext(ctx)
	defer cancel()
	made, err := plugins.Preamble(ctx, catalog)
	if err != nil {
		return made, err
	}
	*p = preamble{catalog, made}
	return made, nil
}

// preambleOf returns the driver's preamble for a catalog of the session. Unlike preamble.of it is safe for
// concurrent use; it calls the driver without holding the mutex.
func (t *pluginSet) preambleOf(ctx context.Context, catalog *tool.Catalog, plugins *plugin.Session) (plugin.Preamble, error) {
	t.preambleMu.Lock()
	known := t.preamble
	t.preambleMu.Unlock()
	made, err := known.of(ctx, catalog, plugins)
	t.preambleMu.Lock()
	defer t.preambleMu.Unlock()
	if err == nil {
		t.preamble = known
	}
	return made, err
}

// layers returns the prompt parts of the session's settings and of its overlay.
func (t *pluginSet) layers(cfg protocol.Config) []plugin.Prompt {
	return []plugin.Prompt{
		{Slot: plugin.SlotGuidance, Priority: 90, Content: cfg.Prompt},
		{Slot: plugin.SlotRuntimeContext, Content: *t.prompt.Load()},
	}
}
