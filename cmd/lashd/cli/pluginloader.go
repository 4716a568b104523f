package cli

import (
	"cmp"
	"context"
	"os"

	"lashd/cmd/internal/config"
	"lashd/cmd/internal/daemon"
	"lashd/engine"
	"lashd/engine/clientserver"
	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/engine/rulebook"
	"lashd/persistence"
	"lashd/pluginloader"
	"lashd/rpc/protocol"
)

// loader returns the plugin loader of a daemon. The caller must pass the engine to
// the returned function before the loader runs: the loader reports changes of
// plugins to it. The two need each other, and the engine is built second. knows reports whether there is a model with a name.
func (e *server) loader(store *persistence.Store, base *plugin.Host, cfg config.Config, nonce string, knows func(model string) bool) (*pluginloader.Loader, func(*engine.Engine), error) {
	options, err := cfg.PluginOptions()
	if err != nil {
		return nil, nil, err
	}
	var eng *engine.Engine
	return pluginloader.New(pluginloader.Config{
		Base: base, Driver: standard.ID, User: daemon.UserPlugins(), Layout: daemon.UserLayout(), Home: e.Home, Environ: cfg.Environ(os.Environ()), Nonce: nonce, Version: daemon.Version,
		Options: options, Limits: cfg.PluginLimits.Limits(), Sandbox: cfg.PluginBoxes, Replace: cfg.Replace, Memory: store, Log: e.Log, Knows: knows,
		Servers: pluginloader.ServerConfig{Places: e.sandboxes(cfg), Default: cmp.Or(cfg.Sandbox, protocol.SandboxWorkspace), Settings: cfg.ServerSandboxes(), Sampling: cfg.ServerSampling(), Logins: config.OpenServerLogins(e.Home),
			Denied: func(ctx context.Context, id protocol.SessionID) ([]string, error) {
				return eng.Rules.DeniedHosts(ctx, id)
			}},
		News:         func(event protocol.ServerEvent) { eng.PluginChanged(event) },
		ToolsChanged: func(ctx context.Context, _ string, id protocol.SessionID) { eng.ToolsChanged(ctx, id) },
		Revoked:      func(ctx context.Context) { eng.PluginsRevoked(ctx) },
		Running:      func() (protocol.TurnID, bool) { return eng.Running() },
	}), func(its *engine.Engine) { eng = its }, nil
}

// rules are the rules of config.toml, together with those of layouts of other agents. It implements rulebook.LayoutRules.
type rules struct {
	rulebook.UserRules
	*pluginloader.Loader
}

// servers connects the MCP servers that clients add to sessions. It adapts the
// loader to the interface of the engine.
type servers struct{ *pluginloader.Loader }

// Connect implements clientserver.Host. tell is called when the state of the server
// changes.
func (s servers) Connect(ctx context.Context, name string, server protocol.MCPServer, tell func(context.Context, error)) (clientserver.Server, error) {
	return s.Loader.Connect(ctx, name, server, tell)
}
