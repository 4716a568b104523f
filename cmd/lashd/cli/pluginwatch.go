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
		w.cwd, w.ill = cwd, map[string]string{}
	}
	for _, p := range list.Data {
		if first {
			w.line(&p)
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
		if line := w.line(e.Plugin); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// line is what a person reads of a plugin as it is now; empty: it is not of the session, or that was reported.
func (w *pluginWatch) line(p *protocol.PluginInfo) string {
	if p.Scope == protocol.ScopeBuiltin || p.Scope == protocol.ScopeWorkspace && !inWorkspace(p.Dir, w.cwd) {
		return ""
	}
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
		more = " (lashd plugin tells more)"
	}
	first := all[0]
	return oneLine(cmp.Or(first.String(), first.Message), 300) + more
}
