package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"lashd/engine"
	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/persistence"
	"lashd/pluginloader"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

// loader returns the plugin loader of a daemon. The caller must pass the engine to
// the returned function before the loader runs: the loader reports changes of
// plugins to it. The two need each other, and the engine is built second.
func (e *environment) loader(store *persistence.Store, base *plugin.Host, cfg config, nonce string) (*pluginloader.Loader, func(*engine.Engine), error) {
	options, err := cfg.pluginOptions()
	if err != nil {
		return nil, nil, err
	}
	var eng *engine.Engine
	return pluginloader.New(pluginloader.Config{
		Base: base, Driver: standard.ID, User: userPlugins(), Home: e.home, Environ: cfg.environ(os.Environ()), Nonce: nonce, Version: Version,
		Options: options, Limits: cfg.PluginLimits.limits(), Sandbox: cfg.PluginBoxes, Replace: cfg.Replace, Memory: store, Log: e.log,
		Servers:      pluginloader.ServerConfig{Places: e.sandboxes(cfg), Default: cmp.Or(cfg.Sandbox, protocol.SandboxWorkspace), Settings: cfg.serverSandboxes()},
		News:         func(event protocol.ServerEvent) { eng.PluginChanged(event) },
		ToolsChanged: func(ctx context.Context, _ string, id protocol.SessionID) { eng.ToolsChanged(ctx, id) },
		Revoked:      func(ctx context.Context) { eng.PluginsRevoked(ctx) },
		Running:      func() (protocol.TurnID, bool) { return eng.Running() },
	}), func(its *engine.Engine) { eng = its }, nil
}

// serverSandboxes returns the settings for sandboxes of MCP servers.
func (c config) serverSandboxes() map[string]manifest.ServerSandbox {
	all := map[string]manifest.ServerSandbox{}
	for name, s := range c.MCP {
		all[name] = manifest.ServerSandbox{Sandbox: s.Sandbox, Network: s.Network, Hosts: s.Hosts, Write: s.Write}
	}
	return all
}

// servers connects the MCP servers that clients add to sessions. It adapts the
// loader to the interface of the engine.
type servers struct{ *pluginloader.Loader }

// Connect implements engine.Servers. tell is called when the state of the server
// changes.
func (s servers) Connect(ctx context.Context, name string, server protocol.MCPServer, tell func(context.Context, error)) (engine.Server, error) {
	return s.Loader.Connect(ctx, name, server, tell)
}

// userPlugins returns the plugin directories of the user, which are trusted
// without approval. They need not exist.
func userPlugins() (dirs []string) {
	if dir, err := os.UserConfigDir(); err == nil {
		dirs = append(dirs, filepath.Join(dir, "lashd", "plugins"))
	}
	if dir, err := os.UserHomeDir(); err == nil {
		dirs = append(dirs, filepath.Join(dir, ".agents", "plugins"))
	}
	return dirs
}

// builtinOptions returns the options of the built-in plugins and drivers with the given ids. New sessions begin with them. The plugin loader hands
// the options of other plugins to their programs.
func (c config) builtinOptions(ids []string) (protocol.PluginOptions, error) {
	all, err := c.pluginOptions()
	maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool { return !slices.Contains(ids, name) })
	return all, err
}

// pluginOptions returns the options of plugins as JSON, by plugin name. An error
// names the plugin whose options have no JSON form.
func (c config) pluginOptions() (map[string]json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	for name, options := range c.Plugins {
		data, err := json.Marshal(options)
		if err != nil {
			return nil, fmt.Errorf("plugins.%s: %w", name, err)
		}
		all[name] = data
	}
	return all, nil
}
