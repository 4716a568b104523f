package sandbox

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/engine/proc"
	"lashd/rpc/protocol"
)

// TestReason has what programs print in a sandbox, and what lashd makes of it.
func TestReason(t *testing.T) {
	home, err := os.MkdirTemp("/var/tmp", "lashd-refusal-") // a command's /tmp is its own
	if err == nil {
		home, err = filepath.EvalSymlinks(home)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	work := filepath.Join(home, "work")
	for name, text := range map[string]string{".ssh/id": "key", "work/file": "x", "work/.vscode/tasks.json": "{}", "work/run.sh": "x", "other/file": "x"} {
		path := filepath.Join(home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("unix", filepath.Join(home, "other/s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := Places{Home: home, Scratch: filepath.Join(home, "scratch")}
	boxOf := func(mode protocol.SandboxMode) *Box {
		box, err := p.For(mode, work)
		if err != nil {
			t.Fatal(err)
		}
		box.Apply(&proc.Command{Dir: work})
		return box
	}
	boxes := map[protocol.SandboxMode]*Box{protocol.SandboxWorkspace: boxOf(protocol.SandboxWorkspace), protocol.SandboxReadOnly: boxOf(protocol.SandboxReadOnly)}
	const sure, may = "The command ran in a sandbox, and ", "The command may have failed because it ran in a sandbox: "
	const noDNS, byHost = "it has no network. It seems to need ", "a.example.com."
	const docker = "it does not use sockets of other programs, such as that of Docker."
	const privileges, secrets = "it has no privileges.", "it does not read secrets, and does not use sockets of other programs."
	const written, only = "because it writes only to the workspace and to /tmp.", "because it writes only to /tmp."
	for _, c := range []struct {
		mode         protocol.SandboxMode
		output, want string
	}{
		{"workspace", "sh: 1: cannot create HOME/new: Read-only file system", sure + "it cannot change HOME/new, " + written},
		{"workspace", "touch: cannot touch '/etc/x': Read-only file system", sure + "it cannot change /etc/x, " + written},
		{"workspace", "sh: 1: cannot create ../plain: Read-only file system", sure + "it cannot change ../plain, " + written},
		{"workspace", "bash: line 1: ~/other/file: Read-only file system", sure + "it cannot change ~/other/file, " + written},
		{"workspace", "OSError: [Errno 30] Read-only file system: '/etc/x'", sure + "it cannot change /etc/x, " + written},
		{"workspace", "Error: EROFS: read-only file system, open '/etc/x'", sure + "it cannot change /etc/x, " + written},
		{"workspace", "open /etc/x: read-only file system", sure + "it cannot change /etc/x, " + written},
		{"workspace", "java.io.FileNotFoundException: /etc/x (Read-only file system)", sure + "it cannot change /etc/x, " + written},
		{"workspace", "touch: cannot touch 'x': Read-only file system", may + "it writes only to the workspace and to /tmp."}, // after cd
		{"workspace", "write failed: Read-only file system", may + "it writes only to the workspace and to /tmp."},
		{"workspace", "sh: 1: cannot create .vscode/tasks.json: Read-only file system", sure + "it cannot change .vscode/tasks.json, because editors, shells or git start programs from there."},
		{"workspace", "mv: cannot move '.vscode' to 'v': Device or resource busy", sure + "it cannot change .vscode, because editors, shells or git start programs from there."},
		{"workspace", "mv: cannot move 'a' to '/etc/a': Read-only file system", sure + "it cannot change /etc/a, " + written},
		{"workspace", "umount: x: Device or resource busy", may + "some files, such as .git/config and .git/hooks, cannot be changed or moved."},
		{"workspace", "rm: cannot remove '.vscode': Device or resource busy", sure + "it cannot change .vscode, because editors, shells or git start programs from there."},
		{"readOnly", "sh: 1: cannot create WORK/new: Read-only file system", sure + "it cannot change WORK/new, because it writes only to /tmp. The mode workspace would allow that."},
		{"readOnly", "sh: 1: cannot create new: Read-only file system", sure + "it cannot change new, because it writes only to /tmp. The mode workspace would allow that in the workspace."},
		{"readOnly", "bash: line 1: file: Read-only file system", sure + "it cannot change file, because it writes only to /tmp. The mode workspace would allow that in the workspace."},
		{"readOnly", "sh: 1: cannot create ./new: Read-only file system", sure + "it cannot change ./new, because it writes only to /tmp. The mode workspace would allow that in the workspace."},
		{"readOnly", "sh: 1: cannot create /etc/x: Read-only file system", sure + "it cannot change /etc/x, " + only},
		{"workspace", "cat: HOME/.ssh/id: Permission denied", sure + "it cannot use HOME/.ssh/id, which may contain secrets."},
		{"workspace", "PermissionError: [Errno 13] Permission denied: 'HOME/.ssh/id'", sure + "it cannot use HOME/.ssh/id, which may contain secrets."},
		{"workspace", "nc: HOME/other/s: Permission denied", sure + "it does not use sockets of other programs, such as HOME/other/s."},
		{"workspace", "sh: 1: ./run.sh: Permission denied", ""},
		{"readOnly", "sh: 1: ./run.sh: Permission denied", ""},
		{"workspace", "cat: WORK/file: Permission denied\ncat: HOME/.ssh/id: Permission denied", sure + "it cannot use HOME/.ssh/id, which may contain secrets."},
		{"workspace", "cat: id: Permission denied", may + secrets},
		{"workspace", "Permission denied", may + secrets},
		{"workspace", "chown: changing ownership of 'file': Operation not permitted", may + privileges},
		{"workspace", "curl: (7) Failed to connect to localhost port 1: Connection refused", may + "its network has only its own servers."},
		{"workspace", "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?", sure + docker},
		{"workspace", "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock", sure + docker},
		{"workspace", "curl: (6) Could not resolve host: a.example.com", sure + noDNS + byHost},
		{"workspace", "dial tcp: lookup a.example.com on 1.1.1.1:53: no such host", sure + noDNS + byHost},
		{"workspace", "getaddrinfo ENOTFOUND a.example.com", sure + noDNS + byHost},
		{"workspace", "java.net.UnknownHostException: a.example.com", sure + noDNS + byHost},
		{"workspace", "connect ENETUNREACH 1.2.3.4:443", sure + "it has no network."},
		{"workspace", "npm error ERESOLVE could not resolve", ""},
	} {
		fill := strings.NewReplacer("HOME", home, "WORK", work)
		got := ""
		if r := boxes[c.mode].reason(Ended{Output: fill.Replace(c.output) + "\n", Code: 1}); r != nil {
			got = r.sentence()
		}
		if want := fill.Replace(c.want); got != want {
			t.Errorf("issue/20-2 in the mode %s, of %q it says\n%q, want\n%q", c.mode, c.output, got, want)
		}
	}
	if got := boxes["workspace"].Explain(Ended{Output: "curl: (6) Could not resolve host: a.example.com", Code: 6}); !strings.Contains(got, `call again with "hosts": ["a.example.com"], or a person adds a rule`) {
		t.Errorf("part13/24 the model reads %q", got)
	}
	if got := boxes["workspace"].Explain(Ended{Output: "cat: /etc/x: Permission denied"}); got != "" {
		t.Errorf("issue/20-2 of a command that succeeds it says %q", got)
	}
}
