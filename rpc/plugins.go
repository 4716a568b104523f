package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"lashd/engine"
	"lashd/engine/param"
	"lashd/pluginloader/mcp"
	"lashd/rpc/protocol"
)

// Plugins manages the plugins that have a directory. The plugin methods call it; package
// pluginloader implements it. Methods are called from many goroutines. The handlers below check the
// params first and make changes idempotent with engine.Once.
type Plugins interface {
	// List returns the plugins of a workspace and the user's own.
	List(context.Context, *protocol.PluginListParams) (*protocol.PluginListResult, error)
	// Read returns one plugin with the content digest that Trust needs.
	Read(context.Context, *protocol.PluginReadParams) (*protocol.PluginReadResult, error)
	// Logs returns lines that a plugin has logged.
	Logs(context.Context, *protocol.PluginLogsParams) (*protocol.PluginLogsResult, error)
	// Reload reads the plugin directories again and switches sessions to new versions.
	Reload(context.Context, *protocol.PluginReloadParams) (*protocol.PluginReloadResult, error)
	// Trust approves the exact files of a workspace plugin; Untrust revokes that.
	Trust(context.Context, *protocol.PluginTrustParams) (*protocol.PluginResult, error)
	Untrust(context.Context, *protocol.PluginUntrustParams) (*protocol.PluginResult, error)
	// SetEnabled switches a plugin on or off.
	SetEnabled(context.Context, *protocol.PluginEnableParams) (*protocol.PluginResult, error)
	// Condition returns the sandbox for plugin programs, the state of the watched directories, and the plugins with problems.
	Condition() (sandbox string, roots []protocol.PluginRoot, ailing []protocol.PluginInfo)
}

// pluginList checks the workspace and lists its plugins.
func (c *conn) pluginList(ctx context.Context, p *protocol.PluginListParams) (*protocol.PluginListResult, error) {
	if _, err := param.CheckWorkspace(p.Cwd); err != nil {
		return nil, err
	}
	return c.Plugins.List(ctx, p)
}

// pluginRead checks the name and reads the plugin.
func (c *conn) pluginRead(ctx context.Context, p *protocol.PluginReadParams) (*protocol.PluginReadResult, error) {
	if err := param.CheckPlugin(p.Name, p.Cwd); err != nil {
		return nil, err
	}
	return c.Plugins.Read(ctx, p)
}

// maxLogLines is the maximum number of lines in one result of plugin/logs.
const maxLogLines = 1000

// pluginLogs checks the range. A limit of 0 leaves the number of lines to the loader.
func (c *conn) pluginLogs(ctx context.Context, p *protocol.PluginLogsParams) (*protocol.PluginLogsResult, error) {
	if err := param.CheckPlugin(p.Name, p.Cwd); err != nil {
		return nil, err
	}
	if p.Limit < 0 || p.Limit > maxLogLines {
		return nil, &param.Error{Pointer: "/limit", Reason: fmt.Sprintf("must be between 1 and %d", maxLogLines)}
	}
	return c.Plugins.Logs(ctx, p)
}

// pluginReload reloads once for each idempotency key.
func (c *conn) pluginReload(ctx context.Context, p *protocol.PluginReloadParams) (*protocol.PluginReloadResult, error) {
	if _, err := param.CheckWorkspace(p.Cwd); err != nil {
		return nil, err
	}
	if modes := []protocol.WhenBusy{"", protocol.BusyQueue, protocol.BusyRefuse}; !slices.Contains(modes, p.WhenBusy) {
		return nil, &param.Error{Pointer: "/whenBusy", Reason: "must be queue or refuse"}
	}
	return engine.Once(ctx, c.eng, "plugin/reload", p, func() (*protocol.PluginReloadResult, error) { return c.Plugins.Reload(ctx, p) })
}

// pluginTrust stores the trust once for each idempotency key.
func (c *conn) pluginTrust(ctx context.Context, p *protocol.PluginTrustParams) (*protocol.PluginResult, error) {
	if err := checkTrust(p.Name, p.Cwd); err != nil {
		return nil, err
	}
	return engine.Once(ctx, c.eng, "plugin/trust", p, func() (*protocol.PluginResult, error) { return c.Plugins.Trust(ctx, p) })
}

// pluginUntrust revokes the trust once for each idempotency key.
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

// pluginSetEnabled stores the setting once for each idempotency key.
func (c *conn) pluginSetEnabled(ctx context.Context, p *protocol.PluginEnableParams) (*protocol.PluginResult, error) {
	if err := param.CheckPlugin(p.Name, p.Cwd); err != nil {
		return nil, err
	}
	return engine.Once(ctx, c.eng, "plugin/setEnabled", p, func() (*protocol.PluginResult, error) { return c.Plugins.SetEnabled(ctx, p) })
}

// mcpLogin checks the server and starts a login.
func (c *conn) mcpLogin(ctx context.Context, p *protocol.MCPLoginParams) (*protocol.MCPLoginResult, error) {
	if err := checkServer(&p.MCPServerParams); err != nil {
		return nil, err
	}
	r, err := c.Servers.Login(ctx, p)
	if errors.Is(err, mcp.ErrRedirect) {
		return nil, &param.Error{Pointer: "/redirect", Reason: err.Error()}
	}
	return r, err
}

// mcpFinishLogin passes on the address. An address of another page is a mistake in the parameters, and the login stays in progress.
func (c *conn) mcpFinishLogin(ctx context.Context, p *protocol.MCPFinishLoginParams) (*protocol.Empty, error) {
	r, err := c.Servers.FinishLogin(ctx, p)
	if pasted, ok := errors.AsType[*mcp.PastedError](err); ok {
		return nil, &param.Error{Pointer: "/address", Reason: pasted.Why}
	}
	return r, err
}

// mcpCancelLogin ends a login.
func (c *conn) mcpCancelLogin(ctx context.Context, p *protocol.MCPCancelLoginParams) (*protocol.Empty, error) {
	return c.Servers.CancelLogin(ctx, p)
}

// mcpLogout checks the server and deletes its login.
func (c *conn) mcpLogout(ctx context.Context, p *protocol.MCPServerParams) (*protocol.MCPLogoutResult, error) {
	if err := checkServer(p); err != nil {
		return nil, err
	}
	return c.Servers.Logout(ctx, p)
}

// mcpRestart checks the server and restarts it.
func (c *conn) mcpRestart(ctx context.Context, p *protocol.MCPServerParams) (*protocol.MCPRestartResult, error) {
	if err := checkServer(p); err != nil {
		return nil, err
	}
	return c.Servers.Restart(ctx, p)
}

// checkServer checks the name of a server and where it is.
func checkServer(p *protocol.MCPServerParams) error {
	if p.Server == "" {
		return &param.Error{Pointer: "/server", Reason: "is required; plugin/list lists the servers"}
	}
	if p.Plugin == "" {
		_, err := param.CheckWorkspace(p.Cwd)
		return err
	}
	return param.CheckPlugin(p.Plugin, p.Cwd)
}
