package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

// withoutCall is a Python program that starts another one for which a system call fails: number, errno, and a bit of its first argument
// that must be set (0: any). The numbers are those of amd64 and arm64.
const withoutCall = `import ctypes, os, struct, sys
number, errno, bit = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
def line(code, jt, jf, k): return struct.pack("HBBI", code, jt, jf, k)
test = line(0x20, 0, 0, 16) + line(0x45, 0, 1, bit) if bit else line(0x20, 0, 0, 0) + line(0x15, 0, 1, number)
program = line(0x20, 0, 0, 0) + line(0x15, 0, 3, number) + test + line(0x06, 0, 0, 0x50000 | errno) + line(0x06, 0, 0, 0x7fff0000)
class Filter(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(Filter(len(program) // 8, program)), 0, 0):
    sys.exit("cannot install the filter: %d" % ctypes.get_errno())
os.execv(sys.argv[4], sys.argv[4:])
`

// numberOfClone returns the number of the system call clone.
func numberOfClone(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("uname", "-m").Output()
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(out)) == "aarch64" {
		return "220"
	}
	return "56"
}

// unconfinedCalls are ways in which a turn starts a program, by the word of the input that has the model use it. Each writes the file ran.
var unconfinedCalls = []struct{ word, tool, reply, driver string }{
	{"one", "shell", `{"toolCalls":[{"id":"c1","name":"shell","args":{"command":"echo x > ran"}}]}`, ""},
	{"two", "start_command", `{"toolCalls":[{"id":"c1","name":"start_command","args":{"command":"echo x > ran"}}]}`, ""},
	{"three", "start_monitor", `{"toolCalls":[{"id":"c1","name":"start_monitor","args":{"id":"m","command":"echo x > ran"}}]}`, ""},
	{"four", "mcp__x__run", `{"toolCalls":[{"id":"c1","name":"mcp__x__run","args":{}}]}`, ""},
	{"five", "shell", `{"text":"I run it.\n<starlark>\ntools.shell(\"echo x > ran\")\n</starlark>\n"}`, "rlm"},
}

// runningServer is an MCP server with a tool that writes the file ran of the workspace that is its argument.
const runningServer = `import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    r = {}
    if m["method"] == "initialize":
        r = {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
    if m["method"] == "tools/list":
        r = {"tools": [{"name": "run", "inputSchema": {"type": "object"}}]}
    if m["method"] == "tools/call":
        open(sys.argv[1] + "/ran", "w").write("x")
        r = {"content": [{"type": "text", "text": "ran"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
`

// unconfinable starts the daemon with a script for unconfinedCalls, where the kernel refuses what the sandbox needs.
func unconfinable(t *testing.T, filter []string) (*home, *peer) {
	t.Helper()
	var turns []string
	for _, c := range unconfinedCalls {
		turns = append(turns, fmt.Sprintf(`{"match":{"lastUserContains":"say %s."},"replies":[%s,{"text":"done"}]}`, c.word, c.reply))
	}
	h := newHome(t, map[string]string{"script.json": `{"turns":[` + strings.Join(turns, ",") + `]}`})
	h.write(filepath.Join(h.dir, "config.toml"), fmt.Sprintf("script = %q\n", filepath.Join(h.dir, "script.json")))
	h.plugin("server", map[string]string{
		"plugin.json": fmt.Sprintf(`{"name":"server","lashd":{"mcpServers":{"x":{"command":"python3","args":["${PLUGIN_ROOT}/server.py",%q]}}}}`, h.work),
		"server.py":   runningServer,
	})
	launcher := filepath.Join(t.TempDir(), "launcher.py")
	h.file(launcher, withoutCall)
	d := &daemon{home: h, cmd: h.command("serve")}
	d.cmd.Path, d.cmd.Args = "/usr/bin/env", append(append([]string{"env", "python3", launcher}, filter...), append([]string{d.cmd.Path}, d.cmd.Args[1:]...)...)
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.kill)
	p := h.dial("")
	p.loads("server", nil)
	return h, p
}

// questionOf waits until a turn of a session asks a question, and returns it.
func (p *peer) questionOf(id protocol.SessionID) (q protocol.Decision) {
	p.t.Helper()
	eventually(p.t, "the question", func() error {
		open := ask[protocol.DecisionListResult](p, "decision/list", protocol.DecisionListParams{SessionID: id}).Data
		if len(open) != 1 {
			return fmt.Errorf("%d questions", len(open))
		}
		q = open[0]
		return nil
	})
	return q
}

// TestNoSandbox starts the daemon where the kernel refuses what the sandbox needs. In the modes with a sandbox, the approval mode allows all calls
// but those of the MCP server, which lashd asks about where the approval mode does.
func TestNoSandbox(t *testing.T) {
	const because = "lashd asks about each command, because this machine cannot confine them (no sandbox available: "
	for name, filter := range map[string][]string{
		"Landlock":        {"444", "38", "0"},                    // landlock_create_ruleset fails with ENOSYS
		"mount namespace": {numberOfClone(t), "1", "131072"},     // clone with CLONE_NEWNS fails with EPERM
		"process space":   {numberOfClone(t), "28", "536870912"}, // clone with CLONE_NEWPID fails with ENOSPC
	} {
		h, p := unconfinable(t, filter)
		for _, mode := range []protocol.SandboxMode{protocol.SandboxWorkspace, protocol.SandboxReadOnly, ""} {
			for _, c := range unconfinedCalls {
				t.Run(fmt.Sprintf("part11/escapes without %s, lashd asks before %s %s runs a program, in the mode %q", name, c.driver, c.tool, mode), func(t *testing.T) {
					id := ask[protocol.SessionNewResult](p, "session/new", protocol.SessionNewParams{Cwd: h.work, Driver: c.driver}).SessionID
					approval, mcp := protocol.ApprovalConfig{Sandbox: mode}, strings.HasPrefix(c.tool, "mcp")
					if mode != "" && !mcp {
						approval.Mode = protocol.ApproveAllow
					}
					ask[json.RawMessage](p, "session/configure", protocol.SessionConfigureParams{SessionID: id, Approval: &approval})
					turn := p.start(id, "say "+c.word+".").TurnID
					q := p.questionOf(id)
					if q.Call.Name != c.tool || !mcp && !strings.Contains(q.Prompt, "echo x > ran") {
						t.Errorf("it asks %q about %s", q.Prompt, q.Call.Name)
					}
					if why := q.Detail.Why.Text; !mcp && !strings.HasPrefix(why, because) {
						t.Errorf("it asks because %q", why)
					}
					ask[json.RawMessage](p, "decision/respond", protocol.DecisionRespondParams{DecisionID: q.ID, Choice: protocol.ChooseReject, ArgsHash: q.ArgsHash})
					p.wait(turn)
					if h.size("ran") != 0 {
						t.Error("a rejected call ran")
					}
				})
			}
		}
		t.Run("part11/escapes without "+name+", the approval mode decides about tools of MCP servers, which run outside, and the audit says so", func(t *testing.T) {
			for _, mode := range []protocol.SandboxMode{protocol.SandboxWorkspace, protocol.SandboxReadOnly} {
				os.Remove(filepath.Join(h.work, "ran"))
				id := ask[protocol.SessionNewResult](p, "session/new", protocol.SessionNewParams{Cwd: h.work, Approval: &protocol.ApprovalConfig{Mode: protocol.ApproveAllow, Sandbox: mode}}).SessionID
				turn := p.start(id, "say four.").TurnID
				if mode == protocol.SandboxReadOnly { // a tool that may change something is asked about
					q := p.questionOf(id)
					ask[json.RawMessage](p, "decision/respond", protocol.DecisionRespondParams{DecisionID: q.ID, Choice: protocol.ChooseReject, ArgsHash: q.ArgsHash})
				}
				p.wait(turn)
				if ran := h.size("ran") != 0; ran != (mode == protocol.SandboxWorkspace) {
					t.Errorf("in the mode %s, the tool ran: %v", mode, ran)
				}
				var outside []string
				for _, a := range ask[protocol.AuditListResult](p, "audit/list", protocol.AuditListParams{SessionID: id, Kind: protocol.AuditOutside}).Data {
					outside = append(outside, fmt.Sprintf("%s %.2s by %s: %s", a.Tool, a.Subject, a.Why.By, a.Why.Text))
				}
				if len(outside) != 1 || !strings.HasPrefix(outside[0], "mcp x: by trust: A person trusts the plugin server with this MCP server. Its sandbox is none: no sandbox available: ") {
					t.Errorf("in the mode %s, the audit has %q", mode, outside)
				}
			}
		})
		t.Run("part11/escapes without "+name+", doctor says why", func(t *testing.T) {
			if out := h.lashd("doctor"); !strings.Contains(out, "commands: no sandbox, so lashd asks about each (no sandbox available: ") {
				t.Errorf("doctor says %s", out)
			}
		})
	}
}
