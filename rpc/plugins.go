package rpc

import (
	"context"
	"fmt"
	"slices"

	"lashd/engine"
	"lashd/engine/param"
	"lashd/rpc/protocol"
)

// Plugins manages the plugins that have a directory. The plugin methods call it; package
// pluginloader implements it. Methods are called from many goroutines. The handlers below check the
// params first and make changes idempotent with engine.Once.
type Plugins interface {
	List(context.Context, *protocol.PluginListParams) (*protocol.PluginListResult, error)
	Read(context.Context, *protocol.PluginParams) (*protocol.PluginReadResult, error)
	Logs(context.Context, *protocol.PluginLogsParams) (*protocol.PluginLogsResult, error)
	Reload(context.Context, *protocol.PluginReloadParams) (*protocol.PluginReloadResult, error)
	Trust(context.Context, *protocol.PluginTrustParams) (*protocol.PluginResult, error)
	Untrust(context.Context, *protocol.PluginUntrustParams) (*protocol.PluginResult, error)
	SetEnabled(context.Context, *protocol.PluginEnableParams) (*protocol.PluginResult, error)
	// Condition returns the sandbox for plugin programs, the state of the watched directories, and the plugins with problems.
	Condition() (sandbox string, roots []protocol.PluginRoot, ailing []protocol.PluginInfo)
}

func (c *conn) pluginList(ctx context.Context, p *protocol.PluginListParams) (*protocol.PluginListResult, error) {
	if err := param.CheckWorkspace(p.Cwd); err != nil {
		return nil, err
	}
	return c.Plugins.List(ctx, p)
}

func (c *conn) pluginRead(ctx context.Context, p *protocol.PluginParams) (*protocol.PluginReadResult, error) {
	if err := param.CheckPlugin(p.Name, p.Cwd); err != nil {
		return nil, err
	}
	return c.Plugins.Read(ctx, p)
}

// maxLogLines is the maximum number of lines in one result of plugin/logs.
const maxLogLines = 1000

func (c *conn) pluginLogs(ctx context.Context, p *protocol.PluginLogsParams) (*protocol.PluginLogsResult, error) {
	if err := param.CheckPlugin(p.Name, p.Cwd); err != nil {
		return nil, err
	}
	if p.Limit < 0 || p.Limit > maxLogLines {
		return nil, &param.Error{Pointer: "/limit", Reason: fmt.Sprintf("must be between 1 and %d", maxLogLines)}
	}
	return c.Plugins.Logs(ctx, p)
}

func (c *conn) pluginReload(ctx context.Context, p *protocol.PluginReloadParams) (*protocol.PluginReloadResult, error) {
	if err := param.CheckWorkspace(p.Cwd); err != nil {
		return nil, err
	}
	if modes := []protocol.WhenBusy{"", protocol.BusyQueue, protocol.BusyRefuse}; !slices.Contains(modes, p.WhenBusy) {
		return nil, &param.Error{Pointer: "/whenBusy", Reason: "must be queue or refuse"}
	}
	return engine.Once(ctx, c.eng, "plugin/reload", p, func() (*protocol.PluginReloadResult, error) { return c.Plugins.Reload(ctx, p) })
}

func (c *conn) pluginTrust(ctx context.Context, p *protocol.PluginTrustParams) (*protocol.PluginResult, error) {
	if err := checkTrust(p.Name, p.Cwd); err != nil {
		return nil, err
	}
	return engine.Once(ctx, c.eng, "plugin/trust", p, func() (*protocol.PluginResult, error) { return c.Plugins.Trust(ctx, p) })
}

func (c *conn) pluginUntrust(ctx context.Context, p *protocol.PluginUntrustParams) (*protocol.PluginResult, error) {
	if err := checkTrust(p.Name, p.Cwd); err != nil {
		return nil, err
	}
	return engine.Once(ctx, c.eng, "plugin/untrust", p, func() (*protocol.PluginResult, error) { return c.Plugins.Untrust(ctx, p) })
}

// checkTrust fails unless both a name and a workspace are set.
func checkTrust(name, cwd string) error {
	if cwd == "" {
		return &param.Error{Pointer: "/cwd", Reason: "is required: only workspace plugins need trust"}
	}
	return param.CheckPlugin(name, cwd)
}

func (c *conn) pluginSetEnabled(ctx context.Context, p *protocol.PluginEnableParams) (*protocol.PluginResult, error) {
	if err := param.CheckPlugin(p.Name, p.Cwd); err != nil {
		return nil, err
	}
	return engine.Once(ctx, c.eng, "plugin/setEnabled", p, func() (*protocol.PluginResult, error) { return c.Plugins.SetEnabled(ctx, p) })
}
