//go:build unix

package pluginloader_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

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
	return must(w.Sessions.SetOverlay(w.t.Context(), "cli_a", &protocol.SessionOverlayParams{SessionID: id, MCPServers: servers})).of(w.t).Tools
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
	t.Run("issue/4-2 issue/4-5 a client's servers stay when plugins change, and a new plugin with a server of that name gets the tools", func(t *testing.T) {
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
		if _, err := w.Sessions.SetOverlay(t.Context(), "cli_a", &protocol.SessionOverlayParams{SessionID: id, MCPServers: mine("s")}); err == nil {
			t.Error("it is brought once more")
		}
		if err := os.RemoveAll(filepath.Join(w.user, "late")); err != nil {
			t.Fatal(err)
		}
		w.until("the client's is back", func() bool { return w.call(id, "mcp__s__pid", "{}") == pid })
	})
	t.Run("issue/4-2 issue/4-7 releasing a client's server fails its running call in time, and the turn continues", func(t *testing.T) {
		w := newWorld(t).start()
		id := w.session("")
		w.bring(id, mine("s"))
		said := make(chan string, 1)
		go func() { said <- w.call(id, "mcp__s__sleep", "{}") }()
		time.Sleep(200 * time.Millisecond) // until it is under way; a call that comes later fails, too
		began := time.Now()
		w.bring(id, nil)
		if got := <-said; got != "plugin_stopped" || time.Since(began) > patience {
			t.Errorf("the call returned %q after %v", got, time.Since(began))
		}
	})
	t.Run("issue/4-2 issue/4-7 a server that dies fails its call, and the next call restarts it", func(t *testing.T) {
		w := newWorld(t).start()
		id := w.session("")
		w.bring(id, mine("s"))
		pid := w.call(id, "mcp__s__pid", "{}")
		if got := w.call(id, "mcp__s__die", "{}"); got != "plugin_crashed" {
			t.Errorf("the call returned %q", got)
		}
		if got := w.call(id, "mcp__s__pid", "{}"); got == pid || len(got) > 8 {
			t.Errorf("the next one says %q, before %q", got, pid)
		}
	})
	t.Run("issue/4-2 adding a server again ends its quarantine", func(t *testing.T) {
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
	t.Run("outside/26 a client learns when its server fails too often and when it works again", func(t *testing.T) {
		w := newWorld(t).start()
		told := make(chan error, 100)
		bring := func(name string, s protocol.MCPServer) {
			g := must(w.Connect(t.Context(), name, s, func(_ context.Context, err error) { told <- err })).of(t)
			t.Cleanup(g.Leave)
			<-g.Tried()
		}
		until := func(what string, fits func(error) bool) {
			t.Helper()
			for limit := time.After(patience); ; {
				select {
				case err := <-told:
					if fits(err) {
						return
					}
				case <-limit:
					t.Fatal("it is never told that the server " + what)
				}
			}
		}
		says := func(text string) func(error) bool {
			return func(err error) bool { return err != nil && strings.Contains(err.Error(), text) }
		}
		works := func(err error) bool { return err == nil }
		file := filepath.Join(t.TempDir(), "there")
		bring("s", mine("s", "ONLY_WITH", file)["s"])
		until("fails too often", says("it failed too often, so lashd starts it only when a client adds it again. The last failure: "))
		address := unusedAddress(t)
		bring("far", protocol.MCPServer{URL: "http://" + address})
		until("cannot be reached", says("it is unreachable, and lashd keeps trying. The last failure: "))
		server := sdk.NewServer(&sdk.Implementation{Name: "far", Version: "1"}, nil)
		far := &http.Server{Addr: address, Handler: sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)}
		go func() { _ = far.ListenAndServe() }() // until it is closed
		until("works again", works)
		for session := range server.Sessions() {
			_ = session.Close() // the test is over
		}
		_ = far.Close() // the test has ended
	})
}

// unusedAddress is one on which nothing listens now.
func unusedAddress(t *testing.T) string {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0")).of(t)
	defer l.Close()
	return l.Addr().String()
}
