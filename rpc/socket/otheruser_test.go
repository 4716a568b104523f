//go:build unix

package socket

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lashd/test/skip"
)

const stranger = 65534

func needRoot(t *testing.T) {
	t.Helper()
	skip.Unless(t, "PEERCRED", os.Geteuid() == 0, "only root can try the access of another user")
}

// asStranger prepares a role for another user.
func asStranger(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	needRoot(t)
	cmd := role(name, args...)
	cmd.Path = publicCopy(t, os.Args[0])
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
	return cmd
}

// publicCopy puts the test binary where every user may run it.
func publicCopy(t *testing.T, file string) string {
	t.Helper()
	dir := home(t)
	open(t, dir, 0o755)
	from, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(dir, "test"), os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return to.Name()
}

func open(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestOtherUserIsNotServed(t *testing.T) {
	for _, test := range []struct {
		name        string
		dir, socket os.FileMode // as changed after Listen
		want        string
		refused     int64
	}{
		{"as made", 0o700, 0o600, "permission denied", 0},
		{"open directory", 0o777, 0o600, "permission denied", 0},
		{"open socket", 0o700, 0o666, "permission denied", 0},
		{"both open", 0o777, 0o666, `read ""`, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := home(t)
			path := filepath.Join(dir, "s")
			client := asStranger(t, "client", path)
			l := mustListen(t, mustAcquire(t, dir), path)
			greet(t, l)
			open(t, dir, test.dir)
			open(t, path, test.socket)
			out, err := client.CombinedOutput()
			if err != nil || !strings.Contains(string(out), test.want) {
				t.Errorf("the client says %q, %v; want %q", out, err, test.want)
			}
			if n := l.Refused(); n != test.refused {
				t.Errorf("Refused = %d, want %d", n, test.refused)
			}
			open(t, dir, 0o700)
			if got := greeting(t, path); got != "hi" {
				t.Errorf("then we ourselves read %q, want %q", got, "hi")
			}
		})
	}
}

func TestImpostorIsNotTrusted(t *testing.T) {
	dir := home(t)
	path := filepath.Join(dir, "s")
	open(t, dir, 0o777)
	launch(t, asStranger(t, "impostor", path))

	if conn, err := Dial(t.Context(), path); err == nil || !strings.Contains(err.Error(), "other users can access") {
		t.Errorf("Dial below an open directory = %v, %v; want a refusal", conn, err)
	}
	open(t, dir, 0o700)
	if conn, err := Dial(t.Context(), path); err == nil || !strings.Contains(err.Error(), "runs as user 65534") {
		t.Errorf("Dial a stranger's socket = %v, %v; want a refusal", conn, err)
	}
	if err := os.Chown(dir, stranger, stranger); err != nil {
		t.Fatal(err)
	}
	if conn, err := Dial(t.Context(), path); err == nil || !strings.Contains(err.Error(), "belongs to user 65534") {
		t.Errorf("Dial below a stranger's directory = %v, %v; want a refusal", conn, err)
	}
	if lock, err := Acquire(filepath.Join(dir, "data")); err == nil || !strings.Contains(err.Error(), "belongs to user 65534") {
		t.Errorf("Acquire below a stranger's directory = %v, %v; want a refusal", lock, err)
	}
}

func TestLinkOfAnotherUserIsNotFollowed(t *testing.T) {
	needRoot(t)
	base := home(t)
	layout(t, base, "dir real 0700; dir real/d 0700; dir tmp 1777; link tmp/l ../real")
	dir := filepath.Join(base, "tmp", "l", "d")
	lock, err := Acquire(dir)
	if err != nil {
		t.Fatalf("through a link of ours: %v", err)
	}
	lock.Release()
	if err := os.Lchown(filepath.Join(base, "tmp", "l"), stranger, stranger); err != nil {
		t.Fatal(err)
	}
	if lock, err := Acquire(dir); err == nil || !strings.Contains(err.Error(), "symbolic link that belongs to user 65534") {
		t.Errorf("Acquire through a stranger's link = %v, %v; want a refusal", lock, err)
	}
}
