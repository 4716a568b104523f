package e2e

import (
	"encoding/json"
	"fmt"
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

// TestNoSandbox starts the daemon where the kernel refuses what the sandbox needs.
func TestNoSandbox(t *testing.T) {
	for name, c := range map[string]struct{ filter []string }{
		"Landlock":        {[]string{"444", "38", "0"}},                    // landlock_create_ruleset fails with ENOSYS
		"mount namespace": {[]string{numberOfClone(t), "1", "131072"}},     // clone with CLONE_NEWNS fails with EPERM
		"process space":   {[]string{numberOfClone(t), "28", "536870912"}}, // clone with CLONE_NEWPID fails with ENOSPC
	} {
		t.Run("part11/escapes without "+name+", commands are asked about in each mode, and doctor says why", func(t *testing.T) {
			call := `{"toolCalls":[{"id":"c1","name":"shell","args":{"command":"echo x > ran"}}]}`
			h := newHome(t, map[string]string{"script.json": `{"turns":[{"replies":[` + call + `,{"text":"done"}]},{"replies":[` + call + `,{"text":"done"}]}]}`})
			h.write(filepath.Join(h.dir, "config.toml"), fmt.Sprintf("script = %q\n", filepath.Join(h.dir, "script.json")))
			launcher := filepath.Join(t.TempDir(), "launcher.py")
			h.file(launcher, withoutCall)
			d := &daemon{home: h, cmd: h.command("serve")}
			d.cmd.Path, d.cmd.Args = "/usr/bin/env", append(append([]string{"env", "python3", launcher}, c.filter...), append([]string{d.cmd.Path}, d.cmd.Args[1:]...)...)
			if err := d.cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(d.kill)
			p := h.dial("")
			for _, mode := range []protocol.SandboxMode{protocol.SandboxWorkspace, ""} {
				id := ask[protocol.SessionNewResult](p, "session/new", protocol.SessionNewParams{Cwd: h.work}).SessionID
				if mode != "" {
					ask[json.RawMessage](p, "session/configure", protocol.SessionConfigureParams{SessionID: id, Approval: &protocol.ApprovalConfig{Mode: protocol.ApproveAllow, Sandbox: mode}})
				}
				turn := p.start(id, "go").TurnID
				var q protocol.Decision
				eventually(t, "the question", func() error {
					open := ask[protocol.DecisionListResult](p, "decision/list", protocol.DecisionListParams{SessionID: id}).Data
					if len(open) != 1 {
						return fmt.Errorf("%d questions", len(open))
					}
					q = open[0]
					return nil
				})
				if q.Call.Name != "shell" || !strings.Contains(q.Prompt, "echo x > ran") {
					t.Errorf("in the mode %q it asks %q", mode, q.Prompt)
				}
				if why := q.Detail.Why.Text; !strings.HasPrefix(why, "lashd asks about each command, because this machine cannot confine them (no sandbox available: ") {
					t.Errorf("in the mode %q it asks because %q", mode, why)
				}
				ask[json.RawMessage](p, "decision/respond", protocol.DecisionRespondParams{DecisionID: q.ID, Choice: protocol.ChooseReject, ArgsHash: q.ArgsHash})
				p.wait(turn)
			}
			if h.size("ran") != 0 {
				t.Error("a rejected command ran")
			}
			if out := h.lashd("doctor"); !strings.Contains(out, "commands: no sandbox, so lashd asks about each (no sandbox available: ") {
				t.Errorf("doctor says %s", out)
			}
		})
	}
}
