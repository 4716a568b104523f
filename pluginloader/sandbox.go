package pluginloader

import (
	"cmp"
	"slices"

	"lashd/engine/proc"
	"lashd/pluginloader/child"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

// SandboxMode says what becomes of the sandbox that a plugin asks for.
type SandboxMode string

const (
	SandboxOff      SandboxMode = "off"      // nobody has one
	SandboxOn       SandboxMode = "on"       // it is kept where the system can
	SandboxRequired SandboxMode = "required" // where the system cannot, nothing starts that has asked for one
)

// DefaultLimits stop a program that has run wild, and let every interpreter start. There is none of memory: what can be bounded is
// address space, of which Node, Go and Java take far more than they use.
var DefaultLimits = proc.Limits{OpenFiles: 4096, Processes: 4096, FileSize: 16 << 30}

// confinement is what programs of the plugin are held to. What is lashd's own they never reach.
func (a *assembly) confinement() *child.Confinement {
	c := &a.loader.config
	held := a.manifest.Confinement(c.Limits)
	held.Root, held.Data, held.Hidden = a.copy.Root, a.data, []string{c.Home}
	held.Required = c.Sandbox == SandboxRequired
	if c.Sandbox == SandboxOff {
		held.Sandbox = nil
	}
	return &held
}

// confined says what confines all programs of a plugin to files; empty: it has none.
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
	return proc.Confines().String()
}

// confinedBeforeLocked says what confines the programs of a plugin that sessions still have from before, if it is something else; empty:
// it is not.
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

func runsTools(m *manifest.Plugin) bool {
	return slices.ContainsFunc(m.Tools, func(t manifest.Tool) bool { return len(t.Command) > 0 })
}

// Condition says what confines programs, how directories are watched, and which plugins are not as they should be: those that are
// not loaded, or run as they were before, and those of which a program is quarantined, or an MCP server cannot be reached.
func (l *Loader) Condition() (sandbox string, roots []protocol.PluginRoot, ailing []protocol.PluginInfo) {
	sandbox = string(cmp.Or(l.config.Sandbox, SandboxOn)) + ": " + proc.Confines().String()
	for _, r := range l.watcher.Status() {
		roots = append(roots, protocol.PluginRoot{Dir: r.Root, Watch: string(r.Mode), Reason: r.Reason})
	}
	for i, s := range l.sets() {
		all := l.entries(s)
		if i > 0 {
			all = slices.DeleteFunc(all, func(e *entry) bool { return e.set != s })
		}
		for _, e := range all {
			if info := e.public(); ails(info) {
				ailing = append(ailing, info)
			}
		}
	}
	return sandbox, roots, ailing
}

// well are the statuses of plugins with which nothing is wrong; the first is that of one that is being loaded.
var well = []protocol.PluginStatus{"", protocol.PluginLoaded, protocol.PluginDisabled, protocol.PluginUntrusted}

func ails(p protocol.PluginInfo) bool {
	return !slices.Contains(well, p.Status) || len(failing(p)) > 0
}
