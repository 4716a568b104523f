package cli

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"lashd/rpc/protocol"
)

func TestPluginWatch(t *testing.T) {
	guard := func(status protocol.PluginStatus, problems ...protocol.PluginProblem) protocol.PluginInfo {
		return protocol.PluginInfo{Name: "guard", Scope: protocol.ScopeUser, Dir: "/u/guard", Status: status, Problems: problems}
	}
	broken := protocol.PluginProblem{File: "plugin.json", Line: 3, Column: 5, Message: `unknown field "hoks"`}
	warning := protocol.PluginProblem{File: "skills", Message: "has no effect in lashd", Warning: true}
	other := guard(protocol.PluginFailed, broken)
	other.Scope, other.Dir = protocol.ScopeWorkspace, "/elsewhere/.agents/plugins/guard"
	own := other
	own.Name, own.Dir = "own", "/ws/.agents/plugins/own"
	layout := own
	layout.Name, layout.Dir = "project", "/ws"
	crashed := guard(protocol.PluginLoaded)
	crashed.Process = &protocol.PluginProcess{State: "quarantined", Error: "the process ended: exit status 3"}
	resumed, running := guard(protocol.PluginLoaded), guard(protocol.PluginLoaded)
	resumed.Process, running.Process = &protocol.PluginProcess{State: "resumed"}, &protocol.PluginProcess{State: "running"}
	served := func(state string) protocol.PluginInfo {
		p := guard(protocol.PluginLoaded)
		p.Servers = []protocol.PluginServer{{Name: "well", State: "ready"}, {Name: "files", State: state, Error: "the process ended: exit status 3"}}
		return p
	}
	const files = "MCP server files of plugin guard "
	const gone, unreached = files + "stopped working: it failed too often: the process ended: exit status 3; edit the plugin, or run lash plugin reload", files + "cannot be reached: the process ended: exit status 3; lashd retries"
	off := guard(protocol.PluginDisabled)
	const stopped = `plugin guard stopped working: plugin.json:3:5: unknown field "hoks"; the last good version keeps running`
	for name, c := range map[string]struct {
		known, news, again []protocol.PluginInfo // again: the list of the daemon after a reconnect
		want               []string
	}{
		"breaks and recovers":             {news: []protocol.PluginInfo{guard(protocol.PluginDegraded, warning, broken), guard(protocol.PluginLoaded)}, want: []string{stopped, "plugin guard works again"}},
		"the same twice":                  {news: []protocol.PluginInfo{guard(protocol.PluginDegraded, broken), guard(protocol.PluginDegraded, broken)}, want: []string{stopped}},
		"not again after a reconnect":     {news: []protocol.PluginInfo{guard(protocol.PluginDegraded, broken)}, again: []protocol.PluginInfo{guard(protocol.PluginDegraded, broken)}, want: []string{stopped}},
		"breaks during a lost connection": {known: []protocol.PluginInfo{guard(protocol.PluginLoaded)}, again: []protocol.PluginInfo{guard(protocol.PluginDegraded, broken)}, want: []string{stopped}},
		"known before":                    {known: []protocol.PluginInfo{guard(protocol.PluginDegraded, broken)}, news: []protocol.PluginInfo{guard(protocol.PluginDegraded, broken)}},
		"works all the time":              {news: []protocol.PluginInfo{guard(protocol.PluginLoaded), guard(protocol.PluginLoaded)}},
		"another workspace":               {news: []protocol.PluginInfo{other}},
		"this workspace":                  {news: []protocol.PluginInfo{own}, want: []string{`plugin own does not work: plugin.json:3:5: unknown field "hoks"`}},
		"the layout of this workspace":    {news: []protocol.PluginInfo{layout}, want: []string{`plugin project does not work: plugin.json:3:5: unknown field "hoks"`}},
		"crashes too often":               {news: []protocol.PluginInfo{crashed, guard(protocol.PluginLoaded)}, want: []string{"plugin guard stopped working: its process crashed too often: the process ended: exit status 3; edit it, or run lash plugin reload", "plugin guard works again"}},
		"is retried and works":            {news: []protocol.PluginInfo{crashed, resumed, resumed, running}, want: []string{"plugin guard stopped working: its process crashed too often: the process ended: exit status 3; edit it, or run lash plugin reload", "plugin guard is enabled again; its process starts at its next use", "plugin guard works again"}},
		"a server is retried":             {news: []protocol.PluginInfo{served("quarantined"), served("resumed"), served("resumed"), served("ready")}, want: []string{gone, files + "is starting again", files + "works again"}},
		"disabled":                        {known: []protocol.PluginInfo{guard(protocol.PluginDegraded, broken)}, news: []protocol.PluginInfo{off}},
		"a server fails too often":        {news: []protocol.PluginInfo{served("starting"), served("quarantined"), served("quarantined"), served("starting")}, want: []string{gone, files + "is starting again"}},
		"a server is unreachable":         {news: []protocol.PluginInfo{served("unreachable"), served("ready")}, want: []string{unreached, files + "works again"}},
		"a server fails as before":        {known: []protocol.PluginInfo{served("quarantined")}, again: []protocol.PluginInfo{served("quarantined")}},
		"a server fails during it":        {known: []protocol.PluginInfo{served("ready")}, again: []protocol.PluginInfo{served("unreachable")}, want: []string{unreached}},
		"several problems":                {news: []protocol.PluginInfo{guard(protocol.PluginFailed, broken, broken)}, want: []string{`plugin guard does not work: plugin.json:3:5: unknown field "hoks" (lash plugin shows all problems)`}},
	} {
		t.Run("outside/26 changes of a plugin: "+name, func(t *testing.T) {
			w := newPluginWatch()
			list := c.known
			call := func(_ context.Context, method string, _, result any) error {
				if r, is := result.(*protocol.PluginListResult); is {
					r.Data = list
				}
				return nil
			}
			w.begin(t.Context(), "/ws", call)
			var got []string
			for _, p := range c.news {
				event, err := json.Marshal(protocol.ServerEvent{Type: protocol.ServerPluginChanged, Plugin: &p})
				if err != nil {
					t.Fatal(err)
				}
				w.put(event)
			}
			got = append(got, w.lines()...)
			if list = c.again; list != nil {
				w.begin(t.Context(), "/ws", call)
				got = append(got, w.lines()...)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
