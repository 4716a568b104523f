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

// children returns the process marks of plugins of the user: each has a process id.
func (h *home) children() map[string]string {
	found := map[string]string{}
	for _, p := range left.Marked("LASHD_CHILD=", "HOME="+h.user+"\x00") {
		if i := slices.IndexFunc(p.Environ, func(v string) bool { return strings.HasPrefix(v, "LASHD_CHILD=") }); i >= 0 {
			found[strconv.Itoa(p.PID)] = p.Environ[i]
		}
	}
	return found
}

// soon is the time in which processes must be gone that should end within a second, with slack for a
// busy machine.
const soon = 20 * time.Second

// none waits until no process of a plugin is left, at most for soon.
func (h *home) none(limit time.Duration) {
	h.t.Helper()
	began := time.Now()
	eventually(h.t, "no process of a plugin is left", func() error {
		if left := h.children(); len(left) > 0 {
			return fmt.Errorf("still running: %v", left)
		}
		return nil
	})
	if took := time.Since(began); took > limit {
		h.t.Errorf("reliability/P14 processes of plugins ended after %v, want at most %v", took, limit)
	}
}

// serving returns the process of each server of a plugin.
func (h *home) serving(plugin string) (byName map[string]string) {
	h.t.Helper()
	byName = map[string]string{}
	for pid, mark := range h.children() {
		_, label, _ := strings.Cut(mark, "/mcp/"+plugin+"/")
		name, _, _ := strings.Cut(label, "/")
		if byName[name] != "" {
			h.t.Errorf("runtime/K05 server %s has two processes, %s and %s", name, byName[name], pid)
		}
		byName[name] = pid
	}
	return byName
}

// five returns five servers; greeting is the setting of the third one.
func (w *world) five(greeting string) string {
	return mcpJSON(map[string]server{
		"everything": {Command: "node", Args: []string{npmServer(w.t, "everything"), "stdio"}},
		"filesystem": {Command: "node", Args: []string{npmServer(w.t, "filesystem"), w.work}},
		"first":      {Command: goServer(w.t), Env: map[string]string{"GREETING": "I am the first"}},
		"second":     {Command: goServer(w.t), Env: map[string]string{"GREETING": "I am the second"}},
		"third":      {Command: goServer(w.t), Env: map[string]string{"GREETING": greeting}},
	})
}

// TestSessionsShareServers has 200 sessions call the same five servers, changes one of them, and kills
// the daemon.
func TestSessionsShareServers(t *testing.T) {
	w := newWorld(t, "allow")
	w.plugin("five", map[string]string{".mcp.json": w.five("I am the third")})
	d := w.serve()
	p := w.dial("")
	p.loads("five", func(i protocol.PluginInfo) bool { return len(i.Servers) == 5 })
	sessions := make([]protocol.SessionID, 200)
	var before map[string]string
	t.Run("runtime/K05 200 sessions with the same five servers share five processes", func(t *testing.T) {
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
				t.Fatalf("session %d gets answers of process %q of server %s, other sessions of %q", i, pid, name, pids[name])
			}
		}
		before = w.serving("five")
		if len(before) != 5 {
			t.Errorf("processes: %v", before)
		}
		for name, pid := range pids {
			if before[name] != pid {
				t.Errorf("server %s is process %s, but answered as %s", name, before[name], pid)
			}
		}
	})
	t.Run("runtime/K05 a change of one server's environment restarts that one only", func(t *testing.T) {
		digest := p.listed("five").Digest
		w.plugin("five", map[string]string{".mcp.json": w.five("I am another")})
		p.loads("five", func(i protocol.PluginInfo) bool { return i.Digest != digest })
		for _, id := range sessions { // each session uses the new server from its next turn on
			p.says(id, "mcp__third__greeting", `{}`, "I am another")
		}
		var after map[string]string
		eventually(t, "the previous server has stopped", func() error {
			if n := len(w.children()); n != 5 {
				return fmt.Errorf("%d processes", n)
			}
			after = w.serving("five")
			return nil
		})
		if after["third"] == before["third"] {
			t.Error("the server with another environment was not restarted")
		}
		delete(after, "third")
		delete(before, "third")
		if !maps.Equal(before, after) {
			t.Errorf("the other servers were %v and are %v", before, after)
		}
	})
	t.Run("reliability/P14 no server is left a second after a kill, and none starts without a call", func(t *testing.T) {
		id := sessions[0]
		turn := p.start(id, fakemodel.ToolMarker("mcp__everything__trigger-long-running-operation", `{"duration":60,"steps":1}`)).TurnID
		p.attach(id, 0)
		p.event("the call", func(e protocol.Event) bool { return callStarted(e) && e.TurnID == turn })
		d.kill()
		w.none(soon)
		w.serve()
		p = w.dial("")
		info, running := p.listed("five"), w.serving("five")
		delete(running, "everything") // an interrupted call may be repeated by now
		if info.Status != protocol.PluginLoaded || len(running) != 0 {
			t.Errorf("after a restart the plugin is %+v; running: %v", info, running)
		}
		p.says(p.session(w.home), "mcp__third__greeting", `{}`, "I am another")
		if n := len(w.children()); n < 1 || n > 2 { // including that of the interrupted call
			t.Errorf("children: %v", w.children())
		}
	})
}
