package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/skip"
)

// writingProcess is a plugin program whose tool writes a file of the workspace.
const writingProcess = `
def execute(name, args):
    try:
        open(%q, "w").write("x")
        return {"output": {"status": "success", "text": "written"}}
    except OSError as e:
        return {"output": {"status": "success", "text": str(e)}}
` + plainProgram

// writingWorld has plugins in sandboxes that write to the workspace in each way in which a plugin runs a program: a process that serves all
// sessions, a command that is a tool, a hook, and an MCP server. Each writes a file of its own, which the tools read, so that no one asks.
func writingWorld(t *testing.T) *world {
	t.Helper()
	out, err := exec.Command("python3", "-c", "import os, sys; print(sys.executable, os.path.realpath(sys.base_prefix))").Output()
	skip.Unless(t, "PYTHON", err == nil, "there is no python3")
	python, base, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	w := confined(t)
	made := func(name string) string { return filepath.Join(w.work, name) }
	paths := fmt.Sprintf(`"sandbox":{"read":[%q],"write":[%q]}`, base, w.work)
	w.plugin("process", map[string]string{
		"plugin.json": fmt.Sprintf(`{"name":"process","lashd":{"process":{"command":[%q,"-S","${PLUGIN_ROOT}/main.py"]},"capabilities":["tools"],
			"tools":[{"name":"put_process","description":"d","kind":"read"}],%s}}`, python, paths),
		"main.py": fmt.Sprintf(writingProcess, made("process")),
	})
	w.plugin("command", map[string]string{"plugin.json": `{"name":"command","lashd":{"tools":[{"name":"put_command","description":"d","kind":"read","command":["touch","command"]}],"sandbox":{"workspace":"write"}}}`})
	w.plugin("hook", map[string]string{
		"plugin.json":      `{"name":"hook","lashd":{"sandbox":{"workspace":"write"}}}`,
		"hooks/hooks.json": `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"touch hook || true"}]}]}}`,
	})
	w.plugin("server", map[string]string{
		"plugin.json": fmt.Sprintf(`{"name":"server","lashd":{"mcpServers":{"x":{"command":%q,"args":["-S","${PLUGIN_ROOT}/server.py",%q]}},%s}}`, python, w.work, paths),
		"server.py":   strings.Replace(runningServer, `{"name": "run",`, `{"name": "run", "annotations": {"readOnlyHint": True},`, 1),
	})
	return w
}

// waysToWrite are the tools of these plugins, and the files that a call makes. The hook runs before each call.
var waysToWrite = map[string]string{"put_process": "process", "put_command": "command", "mcp__x__run": "ran"}

// TestPluginsOfSessionsThatOnlyRead has plugins that may write to the workspace do so in sessions of each mode.
func TestPluginsOfSessionsThatOnlyRead(t *testing.T) {
	w := writingWorld(t)
	d := w.serve()
	p := w.dial("")
	for _, name := range []string{"process", "command", "hook", "server"} {
		p.loads(name, nil)
	}
	session := func(mode protocol.SandboxMode) protocol.SessionID {
		return ask[protocol.SessionNewResult](p, "session/new", protocol.SessionNewParams{Cwd: w.work, Approval: &protocol.ApprovalConfig{Mode: protocol.ApproveAllow, Sandbox: mode}}).SessionID
	}
	check := func(t *testing.T, id protocol.SessionID, writes bool) {
		for tool, file := range waysToWrite {
			for _, name := range []string{file, "hook"} {
				os.Remove(filepath.Join(w.work, name))
			}
			out := p.calls(id, tool, "{}")
			for _, name := range []string{file, "hook"} {
				if _, err := os.Stat(filepath.Join(w.work, name)); (err == nil) != writes {
					t.Errorf("%s: the file %s exists: %v, want %v; the call returned %+v", tool, name, err == nil, writes, out)
				}
			}
		}
	}
	id := session(protocol.SandboxWorkspace)
	configure := func(mode protocol.SandboxMode) {
		ask[protocol.HeadResult](p, "session/configure", protocol.SessionConfigureParams{SessionID: id, Approval: &protocol.ApprovalConfig{Mode: protocol.ApproveAllow, Sandbox: mode}})
	}
	t.Run("part11/1 in the mode workspace, plugins write what their sandbox allows", func(t *testing.T) { check(t, id, true) })
	t.Run("part11/1 in a session with the mode readOnly they do not, also beside a session in which they do", func(t *testing.T) {
		check(t, session(protocol.SandboxReadOnly), false)
	})
	t.Run("part11/1 they do not after a session was narrowed", func(t *testing.T) {
		configure(protocol.SandboxReadOnly)
		check(t, id, false)
	})
	t.Run("part11/1 they do not after a restart", func(t *testing.T) {
		d.kill()
		w.serve()
		p = w.dial("")
		check(t, id, false)
	})
	t.Run("part11/1 they do again after the session was widened", func(t *testing.T) {
		configure(protocol.SandboxWorkspace)
		check(t, id, true)
	})
}
