package e2e

import (
	"bufio"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"lashd/test/fakemodel"
)

// unusedAddress returns an address on which nothing listens.
func unusedAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestNewsOfPlugins breaks and repairs a user plugin while a chat and a run are open.
func TestNewsOfPlugins(t *testing.T) {
	const good, bad = `{"name": "guard"}`, "{\"name\": \"guard\",\n \"xyzzy\": 1}"
	begin := func(t *testing.T, steps ...fakemodel.Step) (w *world, save func(string)) {
		w = newWorld(t, "allow", steps...)
		dir := filepath.Join(w.user, ".agents", "plugins", "guard")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		save = func(text string) {
			draft := filepath.Join(w.user, "draft")
			if err := os.WriteFile(draft, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(draft, filepath.Join(dir, "plugin.json")); err != nil {
				t.Fatal(err)
			}
		}
		save(good)
		w.serve()
		w.dial("") // start the daemon
		return w, save
	}
	t.Run("outside/26 an open chat shows that a plugin stops working, and that it works again", func(t *testing.T) {
		t.Parallel()
		w, save := begin(t)
		s := w.chat()
		s.shows("idle")
		time.Sleep(time.Second) // changes before the chat has subscribed are not reported
		save(bad)
		s.shows(`plugin guard stopped working: plugin.json:2:2: unknown field "xyzzy"`)
		s.shows("the last good version keeps running")
		save(good)
		s.shows("plugin guard works again")
		s.types("\x03\x03")
		s.leaves()
	})
	t.Run("outside/26 an open chat shows that MCP servers of a plugin fail too often, and work again", func(t *testing.T) {
		t.Parallel()
		w, save := begin(t)
		s := w.chat()
		s.shows("idle")
		time.Sleep(time.Second) // changes before the chat has subscribed are not reported
		save(`{"name": "guard", "mcpServers": {"broken": {"command": "sh", "args": ["-c", "exit 7"]}}}`)
		s.shows("MCP server broken of plugin guard stopped working: it failed too often")
		if err := w.command("plugin", "reload").Run(); err != nil {
			t.Fatal(err)
		}
		s.shows("MCP server broken of plugin guard is starting again")
		address := unusedAddress(t)
		save(`{"name": "guard", "mcpServers": {"far": {"url": "http://` + address + `"}}}`)
		s.shows("MCP server far of plugin guard cannot be reached")
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		mcpServer := sdk.NewServer(&sdk.Implementation{Name: "far", Version: "1"}, nil)
		far := &http.Server{Handler: sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return mcpServer }, nil)}
		go far.Serve(listener)
		t.Cleanup(func() { far.Close() })
		s.shows("MCP server far of plugin guard works again")
		s.types("\x03\x03")
		s.leaves()
	})
	t.Run("outside/26 a run reports it on stderr", func(t *testing.T) {
		t.Parallel()
		w, save := begin(t, fakemodel.Step{Parts: []fakemodel.Part{{Text: "I think. "}, {Stall: true}}})
		cmd := w.command("run", "hello")
		cmd.Stderr = nil
		errs, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer time.AfterFunc(patience, func() { cmd.Process.Kill() }).Stop()
		if _, err := bufio.NewReader(out).ReadString(' '); err != nil { // once the turn runs, lash run has subscribed
			t.Fatal(err)
		}
		lines := bufio.NewScanner(errs)
		sees := func(want string) {
			t.Helper()
			for lines.Scan() {
				if strings.Contains(lines.Text(), want) {
					return
				}
			}
			t.Fatalf("it exited without printing %q", want)
		}
		save(bad)
		sees(`[plugin guard stopped working: plugin.json:2:2: unknown field "xyzzy"; the last good version keeps running]`)
		save(good)
		sees("[plugin guard works again]")
		cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
}
