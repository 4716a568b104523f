package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// badProgram is a plugin whose tool misbehaves as its name says.
const badProgram = `
import os, signal, subprocess, time

def crash(): os.kill(os.getpid(), signal.SIGKILL)

def hang():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True: time.sleep(1)

def flood(fd, text):
    while True: os.write(fd, text)

def leave(): subprocess.Popen(["sleep", "1000"], start_new_session=True)

does = {
    "good": lambda: None, "crash": crash, "hang": hang, "leave": leave,
    "babble": lambda: flood(1, b"la la la\n" * 1000), "grumble": lambda: flood(2, b"no no no\n" * 1000),
    "notify": lambda: flood(1, b'{"jsonrpc":"2.0","method":"log","params":{"level":"info","message":"x"}}\n' * 100),
}
def execute(name, args):
    does[name]()
    return {"output": {"status": "success", "text": name}}
` + plainProgram

// comesTo lists the possible results of a call of each plugin. A call that is late, and did not stop
// in time, has an unknown outcome.
var comesTo = map[string][]string{
	"good": {"success"}, "leave": {"success"}, "crash": {"plugin_crashed"}, "babble": {"plugin_protocol"}, "notify": {"plugin_protocol"},
	"hang": {"timeout", "unknown"}, "grumble": {"timeout", "unknown"},
}

// misbehaving is a world with all of these plugins and an MCP server.
func misbehaving(t *testing.T) (*world, *daemon, *peer) {
	w := newWorld(t, "allow")
	w.has("python")
	for name := range comesTo {
		limit := 20_000
		if slices.Contains(comesTo[name], "timeout") {
			limit = 1500
		}
		w.plugin(name, map[string]string{"main.py": badProgram, "plugin.json": fmt.Sprintf(
			`{"name":%q,"lashd":{"process":{"command":["python3","${PLUGIN_ROOT}/main.py"]},"tools":[{"name":"%s_now","description":"d","timeoutMs":%d}]}}`, name, name, limit)})
	}
	w.plugin("servers", map[string]string{".mcp.json": mcpJSON(map[string]server{"sdk": {Command: goServer(t)}})})
	d := w.serve()
	p := w.dial("")
	for name := range comesTo {
		p.loads(name, nil)
	}
	p.loads("servers", nil)
	return w, d, p
}

// code returns the failure code of a call.
func code(out protocol.ToolOutput) string {
	if out.Failure == nil {
		return string(out.Status)
	}
	return out.Failure.Code
}

// TestPluginsMisbehave has plugins misbehave at the same time while other sessions run turns, and then
// kills the daemon.
func TestPluginsMisbehave(t *testing.T) {
	w, d, p := misbehaving(t)
	t.Run("reliability/P14 a plugin that crashes, hangs or floods fails only its own calls, in time, and other turns continue", func(t *testing.T) {
		turns := map[string]protocol.TurnID{}
		sessions := map[string]protocol.SessionID{}
		for name := range comesTo {
			sessions[name] = p.session(w.home)
			turns[name] = p.start(sessions[name], fakemodel.ToolMarker(name+"_now", `{}`)).TurnID
		}
		w.workBeside(func() {
			for name, turn := range turns {
				if got := code(called(t, p.wait(turn), name+"_now")); !slices.Contains(comesTo[name], got) {
					t.Errorf("the call of %s returns %q, want one of %q", name, got, comesTo[name])
				}
			}
		})
		for _, id := range sessions {
			p.says(id, "good_now", `{}`, "good")
			p.says(id, "mcp__sdk__pid", `{}`, "")
		}
	})
	t.Run("reliability/P14 a second after a kill only escaped processes are left, and the next daemon kills those", func(t *testing.T) {
		id := p.session(w.home)
		p.says(id, "leave_now", `{}`, "leave")
		p.says(id, "mcp__sdk__pid", `{}`, "")
		p.attach(id, 0)
		turn := p.start(id, fakemodel.ToolMarker("hang_now", `{}`)).TurnID
		p.event("the call", func(e protocol.Event) bool { return callStarted(e) && e.TurnID == turn })
		before := w.children()
		d.kill()
		w.onlyFled(len(before))
		w.serve()
		p = w.dial("")
		w.none(patience)
		p.says(p.session(w.home), "good_now", `{}`, "good")
	})
}

// onlyFled waits until only escaped processes are left of the children of a dead daemon. before is the
// number of all children.
func (w *world) onlyFled(before int) {
	w.t.Helper()
	eventually(w.t, "only escaped processes are left", func() error {
		fled := w.children()
		for pid := range fled {
			line, err := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
			if err == nil && !strings.HasPrefix(string(line), "sleep\x00") {
				return fmt.Errorf("%q is running", line)
			}
		}
		if before < 3 {
			w.t.Errorf("reliability/P14 there were only %d children", before)
		}
		return nil
	})
}

// workBeside has two clients run turns in a row while do runs.
func (w *world) workBeside(what func()) {
	w.t.Helper()
	over := make(chan struct{})
	var working sync.WaitGroup
	took := make([][]time.Duration, 2)
	for i := range took {
		p := w.dial("")
		id := p.session(w.home)
		working.Go(func() {
			for {
				began := time.Now()
				r, err := try[protocol.TurnReport](p, "turn/run", protocol.TurnStartParams{SessionID: id, Input: text(fakemodel.ToolMarker("good_now", `{}`))})
				if err != nil || r.State != protocol.TurnCompleted || len(r.ToolCalls) != 1 || code(r.ToolCalls[0].Output) != "success" {
					raw, _ := json.Marshal(r)
					w.t.Errorf("reliability/P14 a turn of another session ends with %v: %s", err, raw)
					return
				}
				took[i] = append(took[i], time.Since(began))
				select {
				case <-over:
					return
				default:
				}
			}
		})
	}
	what()
	close(over)
	working.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	if len(all) == 0 || all[len(all)/2] > soon {
		w.t.Errorf("reliability/P14 %d turns of other sessions ran, in %v", len(all), all)
	}
}
