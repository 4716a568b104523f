package engine

import (
	"bytes"
	"strings"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// toolbox is what plugins contribute to the session, built once it is needed.
type toolbox struct {
	plugins  *plugin.Session
	registry *tool.Registry
	catalog  *tool.Catalog
	client   *clientTools
	settings []byte // the driver and the plugins' options that it was built with
	prompts  [2]string
	system   string            // for catalog and prompts; empty: not rendered yet
	env      *turn.Environment // of system and catalog; nil: not made yet
}

// openTools builds what plugins contribute, on first use and whenever their options have changed, unless somebody
// still works with what was built before.
func (st *state) openTools(cfg protocol.Config) (*toolbox, error) {
	settings := settingsOf(cfg)
	if st.tools != nil && (st.current != nil || st.borrowed > 0 || bytes.Equal(st.tools.settings, settings)) {
		return st.tools, nil
	}
	st.dropTools()
	plugins, err := st.eng.Host.Open(cfg.Driver, cfg.Options, plugin.BuildContext{
		SessionID: st.id, Parent: st.row.Relation.Parent, Cwd: st.row.Cwd, StateDir: st.eng.StateDir,
	})
	if err != nil {
		return nil, err
	}
	t := &toolbox{plugins: plugins, client: &clientTools{session: st.session}, settings: settings}
	t.client.tools.Store(&st.overlay.Tools)
	t.registry = tool.NewRegistry(st.sources(t), st.saved)
	t.catalog = t.registry.Catalog()
	st.tools = t
	return t, nil
}

func settingsOf(cfg protocol.Config) []byte {
	if len(cfg.Options) == 0 {
		return []byte(cfg.Driver)
	}
	return append([]byte(cfg.Driver+"\n"), encode(cfg.Options)...)
}

func (st *state) dropTools() {
	if st.tools == nil {
		return
	}
	if err := st.tools.plugins.Close(); err != nil {
		st.eng.Log.Warn("plugins did not close", "session", st.id, "error", err)
	}
	st.tools = nil
}

// sources are the session's sources of tools: its client's own come first, so that they take precedence.
func (st *state) sources(t *toolbox) []tool.Source {
	var sources []tool.Source
	if len(st.overlay.Tools) > 0 {
		sources = append(sources, tool.Source{ID: "client:" + string(st.overlay.ClientID), Provider: t.client})
	}
	if !st.overlay.WithoutBase {
		sources = append(sources, t.plugins.Sources()...)
	}
	return sources
}

func (t *toolbox) rebuild() {
	t.catalog, t.system, t.env = t.registry.Catalog(), "", nil
}

// render is the system prompt for the catalog as it is. It is kept until something of it changes. A panic of a plugin
// is an error of whoever asks: the session is none the worse for it.
func (st *state) render(cfg protocol.Config) (system string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = st.eng.panicked("session", st.id, p)
		}
	}()
	t := st.tools
	prompts := [2]string{cfg.Prompt, st.overlay.Prompt}
	if t.system == "" || t.prompts != prompts {
		system := t.plugins.System(t.catalog,
			plugin.Prompt{Slot: plugin.SlotGuidance, Priority: 90, Content: cfg.Prompt},
			plugin.Prompt{Slot: plugin.SlotRuntimeContext, Content: st.overlay.Prompt})
		t.prompts, t.system, t.env = prompts, strings.ToValidUTF8(system, "\uFFFD"), nil
	}
	return t.system, nil
}

// environment is what a turn is given at the beginning of an iteration. It is kept until something of it changes.
func (st *state) environment(cfg protocol.Config) (turn.Response, error) {
	system, err := st.render(cfg)
	if err != nil {
		return turn.Response{}, err
	}
	t := st.tools
	if t.env == nil {
		env, err := turn.Environment{System: system, Tools: t.catalog.Manifests()}.Exact()
		if err != nil {
			return turn.Response{}, err
		}
		t.env = &env
	}
	return turn.Response{Sync: t.env, Exact: true}, nil
}
