package pluginloader

import (
	"maps"
	"slices"
	"strings"

	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

// Contributions are what a plugin adds, by kind, as people are shown it.
func Contributions(p *manifest.Plugin) (all []protocol.PluginContribution) {
	add := func(kind, name string, detail ...string) {
		all = append(all, protocol.PluginContribution{Kind: kind, Name: name, Detail: strings.TrimSpace(strings.Join(detail, " "))})
	}
	if p.Process != nil {
		add("process", strings.Join(p.Process.Command, " "), string(p.Process.Startup))
	}
	for _, h := range p.Hooks {
		add("hook", string(h.On), "if it fails:", string(h.OnError))
	}
	for _, h := range p.CommandHooks {
		add("hook", h.Event, h.Matcher, h.Command, strings.Join(h.Args, " "))
	}
	for _, t := range p.Tools {
		add("tool", t.Name, strings.Join(t.Command, " "))
	}
	for _, name := range slices.Sorted(maps.Keys(p.MCPServers)) {
		s := p.MCPServers[name]
		add("server", name, s.URL+s.Command, strings.Join(s.Args, " "))
	}
	for _, o := range p.Operations {
		add("operation", o.Name, string(o.Kind))
	}
	for _, t := range p.Prompt {
		add("prompt", string(t.Slot), t.Content)
	}
	for _, t := range p.Triggers {
		add("trigger", t.Alias+"."+t.Event, t.Description)
	}
	for _, e := range p.Extensions {
		add("extension", e.ID)
	}
	if s := p.ToolSwitches; s != nil {
		add("toolSwitches", "", "on:", strings.Join(s.On, " "), "off:", strings.Join(s.Off, " "))
	}
	if p.Input != nil {
		add("input", "")
	}
	if p.MoreTools {
		add("moreTools", "")
	}
	if p.State != "" {
		add("state", p.State)
	}
	if p.CodeExecutor {
		add("codeExecutor", "")
	}
	return all
}
