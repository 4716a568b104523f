//go:build unix

package pluginloader_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

// mine is the guest as an MCP server of a client's.
func mine(name string, env ...string) protocol.MCPServers {
	s := protocol.MCPServer{Command: os.Args[0], Env: map[string]string{guestVariable: "mcp", "GORACE": "atexit_sleep_ms=0"}}
	for i := 0; i+1 < len(env); i += 2 {
		s.Env[env[i]] = env[i+1]
	}
	return protocol.MCPServers{name: s}
}

func (w *world) bring(id protocol.SessionID, servers protocol.MCPServers) protocol.ToolState {
	w.t.Helper()
	return must(w.SetOverlay(w.t.Context(), "cli_a", &protocol.SessionOverlayParams{SessionID: id, MCPServers: servers})).of(w.t).Tools
}

// withServer is a plugin whose server is equal to that of a client.
func withServer(name string, server protocol.MCPServer) string {
	config, err := json.Marshal(map[string]any{"command": server.Command, "env": server.Env})
	if err != nil {
		panic(err)
	}
	return `{"name":"` + name + `","lashd":{"mcpServers":{"s":` + string(config) + `}}}`
}

func TestBrought(t *testing.T) {
	t.Run("issue/4-2 issue/4-5 a client's servers stay when plugins change, and a plugin that comes with one of that name has the tools", func(t *testing.T) {
		w := newWorld(t).start()
		id := w.session("")
		w.bring(id, mine("s"))
		pid := w.call(id, "mcp__s__pid", "{}")
		w.write("other/plugin.json", manifest("other", ""))
		w.status("", "other", protocol.PluginLoaded)
		if got := w.call(id, "mcp__s__pid", "{}"); got != pid {
			t.Errorf("with another plugin: %q, want %q", got, pid)
		}
		w.write("late/plugin.json", withServer("late", mine("s")["s"]))
		w.status("", "late", protocol.PluginLoaded)
		theirs := w.call(id, "mcp__s__pid", "{}")
		if theirs == pid || len(theirs) > 8 {
			t.Errorf("with a plugin's server of that name: %q, before %q", theirs, pid)
		}
		if _, err := w.SetOverlay(t.Context(), "cli_a", &protocol.SessionOverlayParams{SessionID: id, MCPServers: mine("s")}); err == nil {
			t.Error("it is brought once more")
		}
		if err := os.RemoveAll(filepath.Join(w.user, "late")); err != nil {
			t.Fatal(err)
		}
		w.until("the client's is back", func() bool { return w.call(id, "mcp__s__pid", "{}") == pid })
	})
	t.Run("issue/4-2 issue/4-7 a call under way fails in time when its client's servers are let go, and the turn goes on", func(t *testing.T) {
		w := newWorld(t).start()
		id := w.session("")
		w.bring(id, mine("s"))
		said := make(chan string, 1)
		go func() { said <- w.call(id, "mcp__s__sleep", "{}") }()
		time.Sleep(200 * time.Millisecond) // until it is under way; a call that comes later fails, too
		began := time.Now()
		w.bring(id, nil)
		if got := <-said; got != "plugin_stopped" || time.Since(began) > patience {
			t.Errorf("the call comes to %q after %v", got, time.Since(began))
		}
	})
	t.Run("issue/4-2 issue/4-7 a server that dies fails its call, and the next one starts it again", func(t *testing.T) {
		w := newWorld(t).start()
		id := w.session("")
		w.bring(id, mine("s"))
		pid := w.call(id, "mcp__s__pid", "{}")
		if got := w.call(id, "mcp__s__die", "{}"); got != "plugin_crashed" {
			t.Errorf("the call comes to %q", got)
		}
		if got := w.call(id, "mcp__s__pid", "{}"); got == pid || len(got) > 8 {
			t.Errorf("the next one says %q, before %q", got, pid)
		}
	})
	t.Run("issue/4-2 bringing a server again lets it out of quarantine", func(t *testing.T) {
		w := newWorld(t).start()
		id := w.session("")
		file := filepath.Join(t.TempDir(), "there")
		servers := mine("s", "ONLY_WITH", file)
		w.bring(id, servers)
		time.Sleep(3500 * time.Millisecond) // it fails five times, 0.1 s to 0.8 s apart
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := w.bring(id, servers); len(got.Tools) == 0 {
			t.Errorf("brought again: %+v", got)
		}
	})
}
