//go:build unix

package background

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"lashd/rpc/protocol"
)

// Detach begins a detached command, and gives the id of the shell that waits for it. What it starts has no mark: no sweep finds it.
func (c *Commands) Detach(t *protocol.Task, cwd string) (pid string, err error) {
	w, err := c.Outputs.Writer(t)
	if err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(c.Outputs.path(t, lockFile), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := control(lock, func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) }); err != nil {
		return "", err
	}
	about := c.command(t.Spec.Command, cwd)
	cmd := exec.Command("sh", "-c", detached, "lashd", t.Spec.Command.Script,
		c.Outputs.path(t, statusFile), strconv.Itoa(MaxOutput/512), c.Outputs.path(t, ".out"))
	cmd.Dir, cmd.Env, cmd.ExtraFiles = about.Dir, about.Env, []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// locked tells whether somebody holds the lock of a file. One that is not there is nobody's.
func locked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(control(f, func(fd int) error { return unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) }), unix.EWOULDBLOCK)
}
