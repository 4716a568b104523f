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
