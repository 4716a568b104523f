package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// unconfined is a shell script that runs an escape without a sandbox. It is the first process of a process space with mounts of
// its own, so that no escape does harm or touches a process of the machine. The second process is the victim. It prints "out" if
// the escape did something to the victim, or left a program behind.
const unconfined = `SECRET=` + secretText + ` sleep 1000 &
[ "$(id -u)" != 0 ] || ! [ -d /var/spool/cron ] || mount -t tmpfs tmpfs /var/spool/cron || exit
sh -c "$1" </dev/null 2>&1
case "$1" in *left-*) sleep 0.3; before=$(cat left-*); sleep 0.3; [ "$before" = "$(cat left-*)" ] || echo out; esac
set -- $(cat /proc/2/stat)
while [ "$3" = R ] || [ "$3" = D ]; do sleep 0.01; set -- $(cat /proc/2/stat); done # it was about to sleep
[ "$3${19}" = S0 ] || echo out
`

// TestEscapesOutside runs each escape without a sandbox. One that does not get out there proves nothing in a sandbox.
func TestEscapesOutside(t *testing.T) {
	for _, e := range escapes {
		t.Run("issue/20-1 without a sandbox this gets out: "+e.name, func(t *testing.T) {
			t.Parallel()
			p := newPrison(t)
			p.listens("unix", p.socket)
			before := p.outside()
			out := p.unconfined(e.script)
			got := fires(e.never, out) || slices.Contains(strings.Fields(out), "out")
			for end := time.Now().Add(time.Second); !got && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				got = p.reached.Load() > 0 || p.outside() != before
			}
			if reason := lacks(e.name); got != (reason == "") {
				t.Errorf("it gets out: %t, although this machine lacks %q: %q", got, reason, out)
			}
		})
	}
}

// unconfined runs a script without a sandbox and returns its output.
func (p *prison) unconfined(script string) string {
	p.t.Helper()
	args := []string{"--mount", "--pid", "--fork", "--kill-child", "--mount-proc"}
	if os.Getuid() != 0 {
		args = append(args, "--user", "--map-current-user")
	}
	cmd := exec.Command("unshare", append(args, "sh", "-c", unconfined, "sh", p.fill(script, "2"))...)
	p.path = []string{interpreter()}
	cmd.Env, cmd.Dir = p.command().Env, p.work
	secret, err := os.Open(filepath.Join(p.dir, "keys.json"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer secret.Close()
	cmd.ExtraFiles = []*os.File{secret, secret} // such as a program that forgets to close its files leaves open
	out, err := cmd.CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		p.t.Fatal(err)
	}
	return string(out)
}

// interpreter returns the directory of Python itself, which a slow program may stand for in PATH.
var interpreter = sync.OnceValue(func() string {
	path, _ := exec.Command("python3", "-c", "import os, sys; print(os.path.dirname(os.path.realpath(sys.executable)))").Output() // without it, each script says so
	return strings.TrimSpace(string(path))
})

// privileged are the escapes that get out only as root.
var privileged = []string{
	"mount something", "a mount namespace", "the namespaces of another process", "chroot", "write to the system", "write to kernel settings", "write to cgroups",
	"make a device", "a packet socket", "kernel programs", "use sudo or su", "become another user", "move to another cgroup", "a network namespace", "a process namespace",
}

// lacks returns what an escape needs and this machine or user does not have, or "".
func lacks(name string) string {
	if os.Getuid() != 0 && slices.Contains(privileged, name) {
		return "root"
	}
	switch name {
	case "read a raw disk":
		return unless("a disk that this user may read", slices.ContainsFunc(disks(), func(path string) bool { f, err := os.Open(path); f.Close(); return err == nil }))
	case "type into the terminal":
		return unless("dev.tty.legacy_tiocsti", os.Getuid() == 0 || setting("dev/tty/legacy_tiocsti") != "0")
	case "read with io_uring":
		return unless("io_uring", setting("kernel/io_uring_disabled") == "0")
	case "performance events":
		return unless("kernel.perf_event_paranoid", os.Getuid() == 0 || setting("kernel/perf_event_paranoid") <= "2")
	case "connect by MPTCP":
		return unless("MPTCP", setting("net/mptcp/enabled") == "1")
	case "a vsock socket":
		return unless("vsock", creates(unix.AF_VSOCK))
	case "connect over IPv6":
		return unless("IPv6", creates(unix.AF_INET6))
	}
	return ""
}

// unless returns a need that is not met, or "".
func unless(need string, met bool) string {
	if met {
		return ""
	}
	return need
}

// disks returns the disks of the machine.
func disks() []string {
	all, _ := filepath.Glob("/dev/[svx]d[a-z]") // the pattern is right
	return all
}

// setting returns a setting of the kernel, or "" if there is none.
func setting(name string) string {
	text, _ := os.ReadFile("/proc/sys/" + name)
	return strings.TrimSpace(string(text))
}

// creates reports whether the kernel has a family of sockets.
func creates(family int) bool {
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	unix.Close(fd)
	return err == nil
}
