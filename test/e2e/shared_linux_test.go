package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
	"lashd/test/left"
)

// children are the processes of plugins of the user's: how each is marked by its process id.
func (h *home) children() map[string]string {
	found := map[string]string{}
	for _, p := range left.Marked("LASHD_CHILD=", "HOME="+h.user+"\x00") {
		if i := slices.IndexFunc(p.Environ, func(v string) bool { return strings.HasPrefix(v, "LASHD_CHILD=") }); i >= 0 {
			found[strconv.Itoa(p.PID)] = p.Environ[i]
		}
	}
	return found
}

// soon is how long processes may be left that should be gone in a second, on a machine that has much else to do.
const soon = 20 * time.Second

// none waits until there are no processes of plugins. They have that long.
func (h *home) none(limit time.Duration) {
	h.t.Helper()
	began := time.Now()
	eventually(h.t, "nothing of the plugins is left", func() error {
		if left := h.children(); len(left) > 0 {
			return fmt.Errorf("left are %v", left)
		}
		return nil
	})
	if took := time.Since(began); took > limit {
		h.t.Errorf("reliability/P14 processes of plugins were left for %v, want at most %v", took, limit)
	}
}

// serving is the process of each server of a plugin.
func (h *home) serving(plugin string) (byName map[string]string) {
	h.t.Helper()
	byName = map[string]string{}
	for pid, mark := range h.children() {
		_, label, _ := strings.Cut(mark, "/mcp/"+plugin+"/")
		name, _, _ := strings.Cut(label, "/")
		if byName[name] != "" {
			h.t.Errorf("runtime/K05 the server %s has the processes %s and %s", name, byName[name], pid)
		}
		byName[name] = pid
	}
	return byName
}

// five are servers whose third is greeted differently.
func (w *world) five(greeting string) string {
	return mcpJSON(map[string]server{
		"everything": {Command: "node", Args: []string{npmServer(w.t, "everything"), "stdio"}},
		"filesystem": {Command: "node", Args: []string{npmServer(w.t, "filesystem"), w.work}},
		"first":      {Command: goServer(w.t), Env: map[string]string{"GREETING": "I am the first"}},
		"second":     {Command: goServer(w.t), Env: map[string]string{"GREETING": "I am the second"}},
		"third":      {Command: goServer(w.t), Env: map[string]string{"GREETING": greeting}},
	})
}

// TestSessionsShareServers has 200 sessions call the same five servers, changes one of these, and kills the daemon.
func TestSessionsShareServers(t *testing.T) {
	w := newWorld(t, "allow")
	w.plugin("five", map[string]string{".mcp.json": w.five("I am the third")})
	d := w.serve()
	p := w.dial("")
	p.loads("five", func(i protocol.PluginInfo) bool { return len(i.Servers) == 5 })
	sessions := make([]protocol.SessionID, 200)
	var before map[string]string
	t.Run("runtime/K05 200 sessions with the same five servers hold five processes", func(t *testing.T) {
		names := []string{"first", "second", "third"}
		pids := map[string]string{}
		for i := range sessions {
			name := names[i%3]
			sessions[i] = p.session(w.home)
			pid := p.calls(sessions[i], "mcp__"+name+"__pid", `{}`).Text
			if pids[name] == "" {
				pids[name] = pid
			}
			if pid != pids[name] || pid == "" {
				t.Fatalf("session %d is answered by the process %q of the server %s, others by %q", i, pid, name, pids[name])
			}
		}
		before = w.serving("five")
		if len(before) != 5 {
			t.Errorf("the processes are %v", before)
		}
		for name, pid := range pids {
			if before[name] != pid {
				t.Errorf("the server %s is process %s, and said %s", name, before[name], pid)
			}
		}
	})
	t.Run("runtime/K05 a change of one server's environment restarts that one only", func(t *testing.T) {
		digest := p.listed("five").Digest
		w.plugin("five", map[string]string{".mcp.json": w.five("I am another")})
		p.loads("five", func(i protocol.PluginInfo) bool { return i.Digest != digest })
		for _, id := range sessions { // each takes it at its next turn
			p.says(id, "mcp__third__greeting", `{}`, "I am another")
		}
		var after map[string]string
		eventually(t, "the server that was there before is gone", func() error {
			if n := len(w.children()); n != 5 {
				return fmt.Errorf("there are %d processes", n)
			}
			after = w.serving("five")
			return nil
		})
		if after["third"] == before["third"] {
			t.Error("the server with another environment was not started anew")
		}
		delete(after, "third")
		delete(before, "third")
		if !maps.Equal(before, after) {
			t.Errorf("the other servers were %v, and are %v", before, after)
		}
	})
	t.Run("reliability/P14 nothing is left of servers a second after the daemon was killed, and nothing starts unasked", func(t *testing.T) {
		id := sessions[0]
		turn := p.start(id, fakemodel.ToolMarker("mcp__everything__trigger-long-running-operation", `{"duration":60,"steps":1}`)).TurnID
		p.attach(id, 0)
		p.event("the call", func(e protocol.Event) bool { return callStarted(e) && e.TurnID == turn })
		d.kill()
		w.none(soon)
		w.serve()
		p = w.dial("")
		info, running := p.listed("five"), w.serving("five")
		delete(running, "everything") // the turn of before may go on by now, as its tool may be called again
		if info.Status != protocol.PluginLoaded || len(running) != 0 {
			t.Errorf("after a restart it is %+v, and there are %v", info, running)
		}
		p.says(p.session(w.home), "mcp__third__greeting", `{}`, "I am another")
		if n := len(w.children()); n < 1 || n > 2 { // with that of the turn of before
			t.Errorf("there are %v", w.children())
		}
	})
}
