package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"lashd/rpc/protocol"
)

// news reads lines until one reports a status of a plugin.
func (s *script) news(plugin string, status protocol.PluginStatus) protocol.PluginInfo {
	s.t.Helper()
	for s.lines.Scan() {
		var l struct {
			Method string
			Params protocol.ServerEvent
		}
		if err := json.Unmarshal(s.lines.Bytes(), &l); err != nil {
			s.t.Fatalf("%v in the line %q", err, s.lines.Text())
		}
		if e := l.Params; l.Method == "server/event" && e.Type == protocol.ServerPluginChanged && e.Plugin.Name == plugin && e.Plugin.Status == status {
			return *e.Plugin
		}
	}
	s.t.Fatalf("no event reports that %s is %s: %v", plugin, status, s.lines.Err())
	return protocol.PluginInfo{}
}

// TestPluginNews reports status changes of a plugin to a script that only reads lines from the socket.
func TestPluginNews(t *testing.T) {
	w := newWorld(t, "allow")
	w.serve()
	s := newScript(t, w)
	s.send(`{"jsonrpc":"2.0","id":1,"method":"server/attach"}`)
	if l, ok := s.answer(); !ok || l.Error != nil {
		t.Fatalf("server/attach was answered %+v", l)
	}
	const good = `{"name":"brief","lashd":{"prompt":[{"slot":"guidance","content":"Be brief."}]}}`
	w.plugin("brief", map[string]string{"plugin.json": good})
	loaded := s.news("brief", protocol.PluginLoaded)
	if loaded.Digest == "" || loaded.Scope != protocol.ScopeUser || loaded.Dir != filepath.Join(w.plugins(), "brief") {
		t.Errorf("issue/4-8 a loaded plugin is reported as %+v", loaded)
	}
	w.plugin("brief", map[string]string{"plugin.json": "{\"name\":\"brief\",\n \"lashd\":{\"prompts\":[]}}"})
	broken := s.news("brief", protocol.PluginDegraded)
	want := protocol.PluginProblem{File: "plugin.json", Line: 2, Column: 11, Message: `unknown field "prompts", did you mean "prompt"?`}
	if len(broken.Problems) != 1 || broken.Problems[0] != want || broken.Digest != loaded.Digest {
		t.Errorf("issue/4-8 a broken plugin is reported as %+v, want the problem %+v", broken, want)
	}
	w.plugin("brief", map[string]string{"plugin.json": good})
	if again := s.news("brief", protocol.PluginLoaded); len(again.Problems) > 0 || again.Digest != loaded.Digest {
		t.Errorf("issue/4-8 a repaired plugin is reported as %+v", again)
	}
	if err := os.RemoveAll(loaded.Dir); err != nil {
		t.Fatal(err)
	}
	if gone := s.news("brief", ""); gone.Dir != loaded.Dir {
		t.Errorf("issue/4-8 a removed plugin is reported as %+v", gone)
	}
}
