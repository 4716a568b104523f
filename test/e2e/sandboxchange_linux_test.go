package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lashd/engine/proc"
	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
	"lashd/test/skip"
)

// makingProgram is a plugin whose tool announces its call, waits for a signal, tries to write outside
// the workspace, and then calls shell.
const makingProgram = `
import json, os, sys, time

WORK, OUTSIDE = %q, %q

def host(method, **params):
    print(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}), flush=True)
    for line in sys.stdin:
        m = json.loads(line)
        if m.get("id") == method:
            return m["result"] if "result" in m else {"refused": m["error"]["message"]}

def make(p):
    open(WORK + "/begun", "w").close()
    while not os.path.exists(WORK + "/go"): time.sleep(0.01)
    try: open(OUTSIDE, "w").close()
    except OSError as e: print(e, file=sys.stderr, flush=True)
    got = host("host/callTool", grant=p["grant"], calls=[{"name": "shell", "args": p["args"]}])
    return {"output": {"status": "success", "text": json.dumps(got)}}

for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    p, r = m.get("params", {}), {}
    if m["method"] == "initialize":
        r = {k: p[k] for k in ("protocolVersion", "pluginId", "nonce", "contributes")}
    if m["method"] == "tool/execute":
        r = make(p)
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
`

// makes creates a plugin whose tool make runs a command with shell. more is added to its manifest.
func (w *world) makes(plugins, python, more string) {
	w.file(filepath.Join(plugins, "making", "main.py"), fmt.Sprintf(makingProgram, w.work, w.outside()))
	w.file(filepath.Join(plugins, "making", "plugin.json"), fmt.Sprintf(
		`{"name":"making","lashd":{"process":{"command":[%q,"-S","${PLUGIN_ROOT}/main.py"]},"capabilities":["tools"],
		"tools":[{"name":"make","description":"d","kind":"read","replay":"safe","serial":true}]%s}}`, python, more))
}

// outside is the file that this plugin writes unless it is sandboxed.
func (w *world) outside() string { return filepath.Join(w.user, "outside") }

// exists waits for a file of the workspace.
func (w *world) exists(name string) {
	w.t.Helper()
	eventually(w.t, name+" exists", func() error { _, err := os.Stat(filepath.Join(w.work, name)); return err })
}

// sandboxing is a plugin that enters or leaves a sandbox while its tool runs in a session that allows
// everything.
type sandboxing struct {
	*world
	p                     *peer
	id                    protocol.SessionID
	plugins, python, held string // the plugin directory, the interpreter, and the part of the manifest that requests a sandbox
}

func newSandboxing(t *testing.T, plugins func(*world) string) *sandboxing {
	t.Helper()
	skip.Unless(t, "LANDLOCK", proc.Confines().Sandbox > 0, proc.Confines().String())
	w, python := meddledWorld(t, `"hooks":["compact"]`)
	base, err := exec.Command(python, "-c", "import os, sys; print(os.path.realpath(sys.base_prefix))").Output()
	if err != nil {
		t.Fatal(err)
	}
	w.serve()
	s := &sandboxing{world: w, p: w.dial(""), plugins: plugins(w), python: python}
	s.held = fmt.Sprintf(`,"sandbox":{"read":[%q],"write":[%q]}`, strings.TrimSpace(string(base)), w.work)
	s.id = ask[protocol.SessionNewResult](s.p, "session/new", protocol.SessionNewParams{Cwd: w.work, Approval: &protocol.ApprovalConfig{Mode: protocol.ApproveAllow}}).SessionID
	return s
}

// info returns the plugin as the daemon reports it.
func (s *sandboxing) info() (found protocol.PluginInfo) {
	s.t.Helper()
	for _, info := range ask[protocol.PluginListResult](s.p, "plugin/list", protocol.PluginListParams{Cwd: s.work}).Data {
		if info.Name == "making" {
			found = info
		}
	}
	return found
}

// becomes waits until the reported plugin fits.
func (s *sandboxing) becomes(what string, fits func(protocol.PluginInfo) bool) {
	s.t.Helper()
	eventually(s.t, what, func() error {
		if info := s.info(); !fits(info) {
			return fmt.Errorf("the plugin is %+v", info)
		}
		return nil
	})
}

// saves writes the manifest and waits until the daemon has noticed it.
func (s *sandboxing) saves(more string, status protocol.PluginStatus) {
	s.t.Helper()
	before := s.info()
	s.makes(s.plugins, s.python, more)
	s.becomes("the plugin is "+string(status), func(i protocol.PluginInfo) bool {
		return i.Status == status && (i.Digest != before.Digest || i.Found != before.Found)
	})
}

// approves approves the contents of the plugin's directory.
func (s *sandboxing) approves() {
	s.t.Helper()
	digest := ask[protocol.PluginReadResult](s.p, "plugin/read", protocol.PluginReadParams{Name: "making", Cwd: s.work}).Digest
	ask[protocol.PluginResult](s.p, "plugin/trust", protocol.PluginTrustParams{Name: "making", Cwd: s.work, Digest: digest})
	s.becomes("the plugin is approved", func(i protocol.PluginInfo) bool { return i.Status == protocol.PluginLoaded && i.Digest == digest })
}

// begins starts a turn that calls the tool, and waits for the call. goesOn continues it.
func (s *sandboxing) begins() protocol.TurnID {
	s.t.Helper()
	for _, name := range []string{"begun", "go"} {
		os.Remove(filepath.Join(s.work, name)) // the file may not exist
	}
	os.Remove(s.outside()) // the file may not exist
	turn := s.p.start(s.id, fakemodel.ToolMarker("make", mustArgs(map[string]string{"command": "touch " + filepath.Join(s.work, "mark")}))).TurnID
	s.exists("begun")
	return turn
}

// goesOn continues the program and checks whether it is confined: whether it writes outside, and
// whether its call needs approval.
func (s *sandboxing) goesOn(turn protocol.TurnID, confined bool) {
	s.t.Helper()
	s.file(filepath.Join(s.work, "go"), "")
	report := s.p.waits(turn)
	if asked := report.State == protocol.TurnWaiting; asked != confined {
		s.t.Errorf("the turn is %s; want the program confined: %t", report.State, confined)
	}
	if _, err := os.Stat(s.outside()); (err != nil) != confined {
		s.t.Errorf("file outside: %v; want the program confined: %t", err, confined)
	}
	if report.State == protocol.TurnWaiting {
		s.p.rejects(turn, "shell")
	}
	s.p.wait(turn)
}

const stillRun = "an older version that sessions still use: "

func TestSandboxThatComes(t *testing.T) {
	t.Run("outside/1 calls of a plugin need approval in open sessions once its manifest requests a sandbox", func(t *testing.T) {
		s := newSandboxing(t, func(w *world) string { return w.plugins() })
		s.saves("", protocol.PluginLoaded)
		turn := s.begins()
		s.saves(s.held, protocol.PluginLoaded)
		if got := s.info().Sandbox; !strings.HasPrefix(got, "landlock") || !strings.Contains(got, stillRun+"none") {
			t.Errorf("while the unconfined program runs, the sandbox is %q", got)
		}
		s.goesOn(turn, false)
		s.goesOn(s.begins(), true)
		s.becomes("nothing runs that is not confined", func(i protocol.PluginInfo) bool {
			return strings.HasPrefix(i.Sandbox, "landlock") && !strings.Contains(i.Sandbox, stillRun)
		})
	})
}

func TestSandboxThatGoes(t *testing.T) {
	t.Run("outside/1 a running program stays in a sandbox that its manifest does not request any more", func(t *testing.T) {
		s := newSandboxing(t, func(w *world) string { return w.plugins() })
		s.saves(s.held, protocol.PluginLoaded)
		turn := s.begins()
		s.saves("", protocol.PluginLoaded)
		if got := s.info().Sandbox; !strings.HasPrefix(got, "none") || !strings.Contains(got, stillRun+"landlock") {
			t.Errorf("while the confined program runs, the sandbox is %q", got)
		}
		s.goesOn(turn, true)
		s.goesOn(s.begins(), false)
	})
	t.Run("outside/1 a workspace plugin stays in its sandbox until a person approves the new manifest", func(t *testing.T) {
		s := newSandboxing(t, func(w *world) string { return filepath.Join(w.work, ".agents", "plugins") })
		s.saves(s.held, protocol.PluginUntrusted)
		s.approves()
		turn := s.begins()
		s.saves("", protocol.PluginModified)
		s.goesOn(turn, true)
		s.goesOn(s.begins(), true)
		turn = s.begins()
		s.approves()
		s.goesOn(turn, true)
		s.goesOn(s.begins(), false)
	})
}
