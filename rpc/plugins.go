package rpc

import (
	"context"

	"lashd/rpc/protocol"
)

// Plugins are the plugins that are directories, and what a person may do with them.
type Plugins interface {
	List(context.Context, *protocol.PluginListParams) (*protocol.PluginListResult, error)
	Read(context.Context, *protocol.PluginParams) (*protocol.PluginReadResult, error)
	Logs(context.Context, *protocol.PluginLogsParams) (*protocol.PluginLogsResult, error)
	Reload(context.Context, *protocol.PluginReloadParams) (*protocol.PluginReloadResult, error)
	Trust(context.Context, *protocol.PluginTrustParams) (*protocol.PluginResult, error)
	Untrust(context.Context, *protocol.PluginUntrustParams) (*protocol.PluginResult, error)
	SetEnabled(context.Context, *protocol.PluginEnableParams) (*protocol.PluginResult, error)
}

func (c *conn) pluginList(ctx context.Context, p *protocol.PluginListParams) (*protocol.PluginListResult, error) {
	return c.Plugins.List(ctx, p)
}

func (c *conn) pluginRead(ctx context.Context, p *protocol.PluginParams) (*protocol.PluginReadResult, error) {
	return c.Plugins.Read(ctx, p)
}

func (c *conn) pluginLogs(ctx context.Context, p *protocol.PluginLogsParams) (*protocol.PluginLogsResult, error) {
	return c.Plugins.Logs(ctx, p)
}

func (c *conn) pluginReload(ctx context.Context, p *protocol.PluginReloadParams) (*protocol.PluginReloadResult, error) {
	return c.Plugins.Reload(ctx, p)
}

func (c *conn) pluginTrust(ctx context.Context, p *protocol.PluginTrustParams) (*protocol.PluginResult, error) {
	return c.Plugins.Trust(ctx, p)
}

func (c *conn) pluginUntrust(ctx context.Context, p *protocol.PluginUntrustParams) (*protocol.PluginResult, error) {
	return c.Plugins.Untrust(ctx, p)
}

func (c *conn) pluginSetEnabled(ctx context.Context, p *protocol.PluginEnableParams) (*protocol.PluginResult, error) {
	return c.Plugins.SetEnabled(ctx, p)
}
