package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"lashd/pluginloader/manifest"
	"lashd/pluginloader/mcp"
	"lashd/rpc/protocol"
)

// ServerSandboxes returns the settings for sandboxes of MCP servers.
func (c Config) ServerSandboxes() map[string]manifest.ServerSandbox {
	all := map[string]manifest.ServerSandbox{}
	for name, s := range c.MCP {
		all[name] = manifest.ServerSandbox{Sandbox: s.Sandbox, Network: s.Network, Hosts: s.Hosts, Write: s.Write}
	}
	return all
}

// ServerSampling returns the limits of the MCP servers that may use the models of sessions.
func (c Config) ServerSampling() map[string]mcp.Sampling {
	all := map[string]mcp.Sampling{}
	for name, s := range c.MCP {
		if s.Sampling {
			all[name] = mcp.Sampling{MaxTokens: cmp.Or(s.MaxTokens, 4096), PerTurn: int(cmp.Or(s.PerTurn, 10))}
		}
	}
	return all
}

// BuiltinOptions returns the options of the built-in plugins and drivers with the given ids. New sessions begin with them. The plugin loader hands
// the options of other plugins to their programs.
func (c Config) BuiltinOptions(ids []string) (protocol.PluginOptions, error) {
	all, err := c.PluginOptions()
	maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool { return !slices.Contains(ids, name) })
	return all, err
}

// PluginOptions returns the options of plugins as JSON, by plugin name. An error
// names the plugin whose options have no JSON form.
func (c Config) PluginOptions() (map[string]json.RawMessage, error) {
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
