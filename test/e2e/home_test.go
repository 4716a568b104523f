package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"lashd/rpc/socket"
)

// patience is the limit for any single wait of a test.
const patience = 2 * time.Minute

// home is a data directory with the socket of its daemon, a workspace, and a user's home directory.
type home struct {
	t                       *testing.T
	dir, socket, work, user string
	path                    []string // directories that come before those of PATH
	env                     []string // more environment variables for lashd
}

// newHome creates a data directory with these files in it.
func newHome(t *testing.T, files map[string]string) *home {
	t.Helper()
	run, err := os.MkdirTemp("", "lashd-") // socket paths must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(run) })
	dir := t.TempDir()
	h := &home{t: t, dir: filepath.Join(dir, "data"), socket: filepath.Join(run, "s"), work: filepath.Join(dir, "work")}
	h.user = filepath.Join(dir, "user")
	for _, d := range []string{h.dir, h.work, h.user} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		h.write(filepath.Join(h.dir, name), text)
	}
	return h
}

func (h *home) write(path, text string) {
	h.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// size is the size of a file of the workspace in bytes; 0 if it does not exist.
func (h *home) size(name string) int {
	info, err := os.Stat(filepath.Join(h.work, name))
	if err != nil {
		return 0
	}
	return int(info.Size())
}

func (h *home) command(args ...string) *exec.Cmd {
	cmd := exec.Command(programOf(args), append([]string{"--home", h.dir, "--socket", h.socket, "--log", "error"}, args...)...)
	cmd.Stderr = os.Stderr
	path := append(slices.Clone(h.path), os.Getenv("PATH"))
	cmd.Env = append(os.Environ(), "HOME="+h.user, "XDG_CONFIG_HOME="+filepath.Join(h.user, ".config"),
		"PATH="+strings.Join(path, string(os.PathListSeparator)))
	cmd.Env = append(cmd.Env, h.env...)
	return cmd
}

// daemon is a running lashd serve.
type daemon struct {
	*home
	cmd  *exec.Cmd
	over bool
}

// serve starts a daemon, which is killed at the end of the test at the latest.
func (h *home) serve() *daemon {
	h.t.Helper()
	d := &daemon{home: h, cmd: h.command("serve")}
	if err := d.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if !d.over {
			d.kill()
		}
	})
	return d
}

// kill ends the daemon as a crash does. It fails the test if the daemon had already ended.
func (d *daemon) kill() {
	d.t.Helper()
	d.over = true
	d.cmd.Process.Signal(syscall.SIGKILL)
	d.cmd.Wait() // reports that it was killed
	if how, ok := d.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || how.Signal() != syscall.SIGKILL {
		d.t.Errorf("the daemon had already ended: %v", d.cmd.ProcessState)
	}
}

// stop asks the daemon to stop, as a service manager does.
func (d *daemon) stop() {
	d.t.Helper()
	d.over = true
	d.cmd.Process.Signal(syscall.SIGTERM)
	slow := time.AfterFunc(patience, func() { d.cmd.Process.Kill() })
	defer slow.Stop()
	if err := d.cmd.Wait(); err != nil {
		d.t.Errorf("stopping the daemon: %v", err)
	}
}

// connect connects to the daemon's socket, and waits for a daemon that is starting.
func (h *home) connect() (conn *net.UnixConn) {
	h.t.Helper()
	eventually(h.t, "a daemon listens", func() (err error) {
		conn, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: h.socket, Net: "unix"})
		return err
	})
	return conn
}

// dial connects a client that speaks one message per line. name becomes its client id unless it is
// empty. A process that a killed daemon was just starting keeps the listener open for a moment, so
// dial tries again.
func (h *home) dial(name string) (p *peer) {
	h.t.Helper()
	eventually(h.t, "a daemon answers", func() (err error) {
		p, err = newPeer(h.t, jsonrpc2.NewPlainObjectStream(h.connect()), name)
		return err
	})
	return p
}

// eventually polls for a condition that has no event, such as a file of another process.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited %v until %s: %v", patience, what, err)
		}
	}
}

// shutdown stops a daemon that the test did not start itself.
func (h *home) shutdown() {
	h.t.Helper()
	if out, err := h.command("call", "shutdown", `{"daemon":true}`).Output(); err != nil {
		h.t.Errorf("shutdown: %s, %v", out, err)
	}
	eventually(h.t, "the daemon has stopped", func() error {
		lock, err := socket.Acquire(h.dir)
		if err == nil {
			lock.Release()
		}
		return err
	})
}
