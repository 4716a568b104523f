package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lashd/test/skip"
)

// nobody is the user id of test processes, if the test may change it.
const nobody = 65534

// TestDaemonIsPrivate has a command of the daemon's user try to read the daemon's memory. Root may
// read everything, so the test runs as another user.
func TestDaemonIsPrivate(t *testing.T) {
	skip.Unless(t, "PEERCRED", os.Geteuid() == 0, "only root can start a daemon as another user")
	dir, err := os.MkdirTemp("", "lashd-private-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	lash, lashd := filepath.Join(dir, "lash"), filepath.Join(dir, "lashd")
	for _, program := range []string{lash, lashd} {
		copyProgram(t, program)
	}
	home := filepath.Join(dir, "home")
	for _, err := range []error{os.Chmod(dir, 0o755), os.Mkdir(home, 0o700), os.Chown(home, nobody, nobody)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	as := func(argv ...string) *exec.Cmd {
		c := exec.Command(argv[0], argv[1:]...)
		c.Dir, c.Env = home, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "OPENAI_API_KEY=a-secret-key", "LASHD_HOME=" + filepath.Join(home, "data")}
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		return c
	}
	daemon := as(lashd, "serve")
	daemon.Stderr = os.Stderr
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { daemon.Process.Signal(syscall.SIGTERM); daemon.Wait() })
	call := func(method, params string) string {
		out, err := as(lash, "call", method, params).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", method, err, out)
		}
		return string(out)
	}
	created := call("session/new", fmt.Sprintf(`{"cwd":%q,"approval":{"mode":"allow"}}`, home))
	_, id, _ := strings.Cut(created, `"sessionId":"`)
	id, _, _ = strings.Cut(id, `"`)
	if id == "" {
		_, id, _ = strings.Cut(created, `"sessionId": "`)
		id, _, _ = strings.Cut(id, `"`)
	}
	for _, file := range []string{"environ", "mem", "maps", "fd/0"} {
		script := fmt.Sprintf(`head -c 1 /proc/%d/%s >/dev/null && echo was read; cat /proc/self/%[2]s >/dev/null 2>&1; echo asked`, daemon.Process.Pid, file)
		out := call("tool/call", mustArgs(map[string]any{"sessionId": id, "name": "shell", "args": map[string]string{"command": script}}))
		if !strings.Contains(out, "ermission denied") || strings.Contains(out, "was read") || !strings.Contains(out, "asked") {
			t.Errorf("outside/9 a command of the same user can read %s of the daemon: %s", file, out)
		}
	}
	if out := call("server/status", "{}"); !strings.Contains(out, "version") {
		t.Errorf("outside/9 the daemon reports %s", out)
	}
}

// copyProgram copies the program with the name of path to path, for every user to run.
func copyProgram(t *testing.T, path string) {
	t.Helper()
	program, err := os.ReadFile(filepath.Join(bin, filepath.Base(path)))
	if err == nil {
		err = os.WriteFile(path, program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}
