package pluginloader

import (
	"maps"
	"slices"
	"strings"

	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

// additions is a list of contributions under construction.
type additions []protocol.PluginContribution

// add appends an entry. The words of detail are joined by spaces.
func (c *additions) add(kind, name string, detail ...string) {
	*c = append(*c, protocol.PluginContribution{Kind: kind, Name: name, Detail: strings.TrimSpace(strings.Join(detail, " "))})
}

// Contributions lists what a plugin adds, by kind, for people who decide whether to trust it. A
// comparison of its names before and after a reload shows the added and removed ones. Texts are complete, so that nothing is hidden
// from the decision.
func Contributions(p *manifest.Plugin) []protocol.PluginContribution {
	all := additions{}
	if p.Process != nil {
		all.add("process", strings.Join(p.Process.Command, " "), string(p.Process.Startup))
	}
	for _, h := range p.Hooks {
		all.add("hook", string(h.On), "if it fails:", string(h.OnError))
	}
	for _, h := range p.CommandHooks {
		all.add("hook", h.Event, h.Matcher, h.If.String(), h.Command, strings.Join(h.Args, " "))
	}
	for _, t := range p.Tools {
		all.add("tool", t.Name, strings.Join(t.Command, " "))
	}
	for _, name := range slices.Sorted(maps.Keys(p.MCPServers)) {
		s := p.MCPServers[name]
		all.add("server", name, s.URL+s.Command, strings.Join(s.Args, " "), s.ServerSandbox.String())
	}
	for _, o := range p.Operations {
		all.add("operation", o.Name, string(o.Kind))
	}
	for _, t := range p.Prompt {
		all.add("prompt", string(t.Slot), t.Content)
	}
	for _, m := range p.Monitors {
		all.add("monitor", m.ID, m.Command)
	}
	for _, t := range p.Triggers {
		all.add("trigger", t.Alias+"."+t.Event, t.Description)
	}
	for _, e := range p.Extensions {
		all.add("extension", e.ID)
	}
	for _, r := range p.Rules {
		all.add("rule", r.String())
	}
	for _, s := range p.Skills {
		all.add("skill", s.Name, s.Description)
	}
	for _, c := range p.Commands {
		all.add("command", c.Name, c.Description)
	}
	for _, a := range p.Agents {
		all.add("agent", a.Name, a.Description)
	}
	all.once(p)
	return all
}

// once adds the contributions of which a plugin has at most one, after those that come in lists.
func (c *additions) once(p *manifest.Plugin) {
	if s := p.ToolSwitches; s != nil {
		c.add("toolSwitches", "", "on:", strings.Join(s.On, " "), "off:", strings.Join(s.Off, " "))
	}
	if p.Input != nil {
		c.add("input", "")
	}
	if p.MoreTools {
		c.add("moreTools", "")
	}
	if p.State != "" {
		c.add("state", p.State)
	}
	for _, name := range p.Tasks {
		c.add("task", name)
	}
	if p.CodeExecutor != nil {
		c.add("codeExecutor", "")
	}
}
