package pluginloader

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lashd/engine/plugin"
	"lashd/engine/proc"
	"lashd/engine/sandbox"
	"lashd/pluginloader/child"
	"lashd/pluginloader/layout"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

// SandboxMode decides whether plugins get the sandbox that they request. It comes from the user's
// configuration and applies to all plugins.
type SandboxMode string

const (
	SandboxOff      SandboxMode = "off"      // never
	SandboxOn       SandboxMode = "on"       // where the system supports it
	SandboxRequired SandboxMode = "required" // always; without support, programs that request one do not start
)

// DefaultLimits stop a runaway program and let every interpreter start. Memory has no default: only
// address space can be limited, and Node, Go and Java reserve far more of it than they use.
var DefaultLimits = proc.Limits{OpenFiles: 4096, Processes: 4096, FileSize: 16 << 30}

// confinement returns the limits and sandbox for the plugin's programs. It always hides lashd's own
// directory, which holds the database and the approvals.
func (a *assembly) confinement() *child.Confinement {
	c := &a.loader.config
	held := a.manifest.Confinement(c.Limits)
	held.Root, held.Data, held.Hidden, held.Places = a.copy.Root, a.data, []string{c.Home}, c.Servers.Places
	held.Required = c.Sandbox == SandboxRequired
	if c.Sandbox == SandboxOff {
		held.Sandbox = nil
	}
	return &held
}

// confined describes the sandbox of the plugin's programs for people, with the reason if there is
// none. It is empty if the plugin has no programs.
func (u *unit) confined(mode SandboxMode) string {
	m := u.manifest
	switch {
	case m.Process == nil && len(m.CommandHooks) == 0 && len(m.MCPServers) == 0 && !runsTools(m):
		return ""
	case m.Sandbox == nil:
		return "none: the plugin does not request one"
	case mode == SandboxOff:
		return "none: disabled in config.toml"
	}
	return proc.Describe()
}

// outside lists the plugin's programs that run outside a sandbox in sessions with a mode: its process, its commands and its MCP servers.
func (a *assembly) outside(mode protocol.SandboxMode) (all []plugin.Program) {
	m := a.manifest
	var commands []string
	if m.Process != nil {
		commands = append(commands, "its process")
	}
	if runsTools(m) || len(m.CommandHooks) > 0 {
		commands = append(commands, "its commands")
	}
	if len(commands) > 0 && (a.confinement().Sandbox == nil || proc.Confines().Sandbox == 0) {
		all = append(all, plugin.Program{
			Tool: "plugin", Command: a.name() + ": " + strings.Join(commands, ", "),
			Why: fmt.Sprintf("A person trusts the plugin %s. Its sandbox is %s.", a.name(), a.confined(a.loader.config.Sandbox)),
		})
	}
	if a.servers != nil {
		all = append(all, a.servers.Outside(mode)...)
	}
	return all
}

// confinedBeforeLocked describes the sandbox of older versions that sessions still use, if it
// differs from that of now; empty: it does not. An edit that adds a sandbox does not confine turns
// that are already running. The caller holds mu.
func (l *Loader) confinedBeforeLocked(now *unit) string {
	if now == nil {
		return ""
	}
	is := now.confined(l.config.Sandbox)
	for _, units := range l.hosts {
		for _, u := range units {
			if was := u.confined(l.config.Sandbox); u.dir == now.dir && was != "" && was != is {
				return was
			}
		}
	}
	return ""
}

// runsTools reports whether the plugin has tools that run commands.
func runsTools(m *manifest.Plugin) bool {
	return slices.ContainsFunc(m.Tools, func(t manifest.Tool) bool { return len(t.Command) > 0 })
}

// Condition returns the state of plugins for health checks: the sandbox, how roots are watched, and
// the plugins that need attention. Those failed to load, run in an older version, or have a program
// that failed too often.
func (l *Loader) Condition() (state string, roots []protocol.PluginRoot, unhealthyPlugins []protocol.PluginInfo) {
	state = string(cmp.Or(l.config.Sandbox, SandboxOn)) + ": " + proc.Describe() + "; commands: " + commands()
	for _, r := range l.watcher.Status() {
		root := protocol.PluginRoot{Dir: layout.Shown(r.Root), Watch: string(r.Mode), Reason: r.Reason}
		if !slices.Contains(roots, root) {
			roots = append(roots, root)
		}
	}
	for i, s := range l.sets() {
		all := l.entries(s)
		if i > 0 {
			all = slices.DeleteFunc(all, func(e *entry) bool { return e.set != s })
		}
		for _, e := range all {
			if info := e.public(); unhealthy(info) {
				unhealthyPlugins = append(unhealthyPlugins, info)
			}
		}
	}
	return state, roots, unhealthyPlugins
}

// commands describes the sandbox of commands and MCP servers for people.
func commands() string {
	if err := sandbox.Available(); err != nil {
		return fmt.Sprintf("no sandbox, so lashd asks about each (%v)", err)
	}
	return "in a sandbox"
}

// healthyStatuses lists the statuses without a problem; "" is that of a plugin that is still being loaded.
var healthyStatuses = []protocol.PluginStatus{"", protocol.PluginLoaded, protocol.PluginDisabled, protocol.PluginUntrusted}

// unhealthy reports whether a plugin needs attention.
func unhealthy(p protocol.PluginInfo) bool {
	return !slices.Contains(healthyStatuses, p.Status) || len(failing(p)) > 0
}
