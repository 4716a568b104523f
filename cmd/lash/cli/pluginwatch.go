package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"

	"lashd/cmd/internal/console"
	"lashd/cmd/lash/chat"
	"lashd/internal/pathresolve"
	"lashd/rpc/client"
	"lashd/rpc/protocol"
)

// pluginWatch reports plugins of a session that stop working or work again. It
// reports each change once, even across reconnects. A nil pluginWatch reports
// nothing. put may be called by any goroutine; the other methods belong to the
// goroutine that follows the session.
//
// lash run and lash chat show its lines between the output of the turn.
type pluginWatch struct {
	news   *client.Inbox
	cwd    string
	inert  string                // what waits for an approval, until it was shown; empty: nothing
	broken map[string]string     // last report about each broken plugin, by directory
	down   map[serverName]string // last reported state of each MCP server that does not work
}

// serverName names an MCP server of a plugin.
type serverName struct {
	dir, name string
}

// newPluginWatch returns a watch that reports nothing until begin is called.
func newPluginWatch() *pluginWatch { return &pluginWatch{news: client.NewInbox(0)} }

// put stores an event of the daemon if it is about plugins. It only searches the
// text, because it runs on the goroutine that reads the connection.
func (w *pluginWatch) put(event json.RawMessage) {
	if bytes.Contains(event, []byte(protocol.ServerPluginChanged)) {
		w.news.Put(event)
	}
}

// sink returns put as the receiver of events, or nil for a nil watch.
func (w *pluginWatch) sink() func(json.RawMessage) {
	if w == nil {
		return nil
	}
	return w.put
}

// more returns a channel that is ready while events are stored. It is nil, and so
// never ready, for a nil watch.
func (w *pluginWatch) more() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.news.More()
}

// begin subscribes to events of the daemon after a connection to a session in cwd.
// The first call records the broken plugins without reporting them. Later calls
// report changes since the connection was lost. If a call fails, the watch reports
// nothing: it is a convenience, and an older daemon may lack the method.
func (w *pluginWatch) begin(ctx context.Context, cwd string, call func(context.Context, string, any, any) error) {
	if w == nil || call(ctx, "server/attach", nil, nil) != nil {
		return
	}
	var list protocol.PluginListResult
	if call(ctx, "plugin/list", protocol.PluginListParams{Cwd: cwd}, &list) != nil {
		return
	}
	first := w.broken == nil || w.cwd != cwd
	if first {
		w.cwd, w.broken, w.down, w.inert = cwd, map[string]string{}, map[serverName]string{}, chat.TrustNote(list.Data)
	}
	for _, p := range list.Data {
		if first {
			w.changes(&p)
		} else if event, err := json.Marshal(protocol.ServerEvent{Type: protocol.ServerPluginChanged, Plugin: &p}); err == nil {
			w.news.Put(event)
		}
	}
}

// untrusted returns a line about parts of the workspace that wait for an approval, once.
func (w *pluginWatch) untrusted() (line string) {
	if w == nil {
		return ""
	}
	line, w.inert = w.inert, ""
	return line
}

// lines returns the changes since the last call, one per line.
func (w *pluginWatch) lines() (all []string) {
	if w == nil || w.broken == nil {
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

// changes returns the changes of a plugin that were not reported before. Built-in
// plugins and those of other workspaces are ignored.
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

// server describes the change of an MCP server, or returns "". It compares states
// only: the error text differs with each attempt. why is that of the newest
// attempt.
func (w *pluginWatch) server(p *protocol.PluginInfo, s *protocol.PluginServer) string {
	key, name, why := serverName{p.Dir, s.Name}, "MCP server "+s.Name+" of plugin "+p.Name, console.OneLine(s.Error, 200)
	was := w.down[key]
	delete(w.down, key)
	if s.State == "quarantined" || s.State == "unreachable" || s.State == "resumed" {
		w.down[key] = s.State
	}
	switch {
	case w.down[key] == was:
		return ""
	case s.State == "quarantined":
		return name + " stopped working: it failed too often: " + why + "; edit the plugin, or run lash plugin reload"
	case s.State == "unreachable":
		return name + " cannot be reached: " + why + "; lashd retries"
	case s.State == "ready":
		return name + " works again"
	}
	return name + " is starting again"
}

// plugin describes the change of a plugin apart from its MCP servers, or returns
// "". A new error of a plugin that was broken before counts as a change.
func (w *pluginWatch) plugin(p *protocol.PluginInfo) string {
	line, before := failing(p), w.broken[p.Dir]
	switch {
	case line == before:
		return ""
	case line != "":
		w.broken[p.Dir] = line
		return line
	}
	delete(w.broken, p.Dir)
	if p.Status != protocol.PluginLoaded {
		return "" // the plugin was disabled or removed
	}
	return "plugin " + p.Name + " works again"
}

// inWorkspace reports whether dir is a plugin directory of the workspace cwd, or
// cwd itself, which is the directory of a layout. It follows links in cwd, since
// the daemon reports resolved paths.
func inWorkspace(dir, cwd string) bool {
	if real, err := pathresolve.Existing(cwd); err == nil {
		cwd = real
	}
	return dir == cwd || filepath.Dir(dir) == filepath.Join(cwd, ".agents", "plugins")
}

// failing describes why a plugin does not work, or returns "".
func failing(p *protocol.PluginInfo) string {
	switch {
	case p.Status == protocol.PluginDegraded:
		return "plugin " + p.Name + " stopped working: " + mistake(p) + "; the last good version keeps running"
	case p.Status == protocol.PluginFailed:
		return "plugin " + p.Name + " does not work: " + mistake(p)
	case p.Process != nil && p.Process.State == "quarantined":
		return "plugin " + p.Name + " stopped working: its process crashed too often: " + console.OneLine(p.Process.Error, 200) +
			"; edit it, or run lash plugin reload"
	case p.Process != nil && p.Process.State == "resumed":
		return "plugin " + p.Name + " is enabled again; its process starts at its next use"
	}
	return ""
}

// mistake describes the first error of a plugin, with its position.
func mistake(p *protocol.PluginInfo) string {
	var all []protocol.PluginProblem
	for _, problem := range p.Problems {
		if !problem.Warning {
			all = append(all, problem)
		}
	}
	if len(all) == 0 {
		return "see lash plugin"
	}
	more := ""
	if len(all) > 1 {
		more = " (lash plugin shows all problems)"
	}
	first := all[0]
	return console.OneLine(cmp.Or(first.String(), first.Message), 300) + more
}
