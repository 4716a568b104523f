package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"

	"lashd/internal/pathresolve"
	"lashd/rpc/client"
	"lashd/rpc/protocol"
)

// pluginWatch reports which plugins of a session stop working, and which work again: each change once, however often the daemon
// is connected to. News may be put by any goroutine; everything else belongs to the goroutine that follows the session.
type pluginWatch struct {
	news *client.Inbox
	cwd  string
	ill  map[string]string // by directory of the plugin: what was reported of it last
	sick map[server]string // the states of MCP servers that do not work, as they were reported last
}

// server names an MCP server of a plugin.
type server struct {
	dir, name string
}

func newPluginWatch() *pluginWatch { return &pluginWatch{news: client.NewInbox(0)} }

// put keeps news of the daemon that are about plugins.
func (w *pluginWatch) put(event json.RawMessage) {
	if bytes.Contains(event, []byte(protocol.ServerPluginChanged)) {
		w.news.Put(event)
	}
}

// more has a value while there are news. Without a watch it never has.
func (w *pluginWatch) more() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.news.More()
}

// begin subscribes to the daemon's news, on a connection to a session in cwd. Plugins that do not work when the session is opened
// are not reported. After a reconnect, what has changed meanwhile is. A daemon that answers neither call only reports nothing.
func (w *pluginWatch) begin(ctx context.Context, cwd string, call func(context.Context, string, any, any) error) {
	if w == nil || call(ctx, "server/attach", nil, nil) != nil {
		return
	}
	var list protocol.PluginListResult
	if call(ctx, "plugin/list", protocol.PluginListParams{Cwd: cwd}, &list) != nil {
		return
	}
	first := w.ill == nil || w.cwd != cwd
	if first {
		w.cwd, w.ill, w.sick = cwd, map[string]string{}, map[server]string{}
	}
	for _, p := range list.Data {
		if first {
			w.changes(&p)
		} else if event, err := json.Marshal(protocol.ServerEvent{Type: protocol.ServerPluginChanged, Plugin: &p}); err == nil {
			w.news.Put(event)
		}
	}
}

// lines are the changes since the last call, one a line.
func (w *pluginWatch) lines() (all []string) {
	if w == nil || w.ill == nil {
		return nil
	}
	for _, raw := range w.news.Take() {
		var e protocol.ServerEvent
		if json.Unmarshal(raw, &e) != nil || e.Type != protocol.ServerPluginChanged || e.Plugin == nil {
			continue
		}
		all = append(all, w.changes(e.Plugin)...)
	}
	return all
}

// changes are what a person reads of a plugin as it is now. There are none of a plugin of another workspace, or if all was reported.
func (w *pluginWatch) changes(p *protocol.PluginInfo) (all []string) {
	if p.Scope == protocol.ScopeBuiltin || p.Scope == protocol.ScopeWorkspace && !inWorkspace(p.Dir, w.cwd) {
		return nil
	}
	if line := w.plugin(p); line != "" {
		all = append(all, line)
	}
	for _, s := range p.Servers {
		if line := w.server(p, &s); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// server is what has changed of an MCP server. Its last error is not compared: it differs with each attempt.
func (w *pluginWatch) server(p *protocol.PluginInfo, s *protocol.PluginServer) string {
	key, name, why := server{p.Dir, s.Name}, "MCP server "+s.Name+" of plugin "+p.Name, oneLine(s.Error, 200)
	was := w.sick[key]
	delete(w.sick, key)
	if s.State == "quarantined" || s.State == "unreachable" || s.State == "resumed" {
		w.sick[key] = s.State
	}
	switch {
	case w.sick[key] == was:
		return ""
	case s.State == "quarantined":
		return name + " stopped working: it failed too often: " + why + "; edit the plugin, or run lashd plugin reload"
	case s.State == "unreachable":
		return name + " cannot be reached: " + why + "; lashd retries"
	case s.State == "ready":
		return name + " works again"
	}
	return name + " is starting again"
}

// plugin is what has changed of a plugin but for its MCP servers.
func (w *pluginWatch) plugin(p *protocol.PluginInfo) string {
	line, before := illness(p), w.ill[p.Dir]
	switch {
	case line == before:
		return ""
	case line != "":
		w.ill[p.Dir] = line
		return line
	}
	delete(w.ill, p.Dir)
	if p.Status != protocol.PluginLoaded {
		return "" // a person has switched it off, or it is gone
	}
	return "plugin " + p.Name + " works again"
}

// inWorkspace reports whether a directory is that of a plugin of a workspace.
func inWorkspace(dir, cwd string) bool {
	if real, err := pathresolve.Existing(cwd); err == nil {
		cwd = real
	}
	return filepath.Dir(dir) == filepath.Join(cwd, ".agents", "plugins")
}

// illness says why a plugin does not work; empty: it does.
func illness(p *protocol.PluginInfo) string {
	switch {
	case p.Status == protocol.PluginDegraded:
		return "plugin " + p.Name + " stopped working: " + mistake(p) + "; the last good version keeps running"
	case p.Status == protocol.PluginFailed:
		return "plugin " + p.Name + " does not work: " + mistake(p)
	case p.Process != nil && p.Process.State == "quarantined":
		return "plugin " + p.Name + " stopped working: its process crashed too often: " + oneLine(p.Process.Error, 200) +
			"; edit it, or run lashd plugin reload"
	case p.Process != nil && p.Process.State == "resumed":
		return "plugin " + p.Name + " is enabled again; its process starts at its next use"
	}
	return ""
}

// mistake is the first problem of a plugin that is no warning, where it is, and how many there are besides.
func mistake(p *protocol.PluginInfo) string {
	var all []protocol.PluginProblem
	for _, problem := range p.Problems {
		if !problem.Warning {
			all = append(all, problem)
		}
	}
	if len(all) == 0 {
		return "see lashd plugin"
	}
	more := ""
	if len(all) > 1 {
		more = " (lashd plugin shows all problems)"
	}
	first := all[0]
	return oneLine(cmp.Or(first.String(), first.Message), 300) + more
}
