//go:build unix

package background

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lashd/engine/proc"
	"lashd/rpc/protocol"
)

// Detach begins a detached command, and gives its reference, which tells people what it is. It has no supervisor, and no sweep finds it.
func (c *Commands) Detach(t *protocol.Task, cwd string) (ref string, err error) {
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
	about, err := c.command(t.Spec.Command, cwd)
	if err != nil {
		return "", err
	}
	defer about.OpenDir.Close()
	script := named + detached
	if t.Spec.Cancel == protocol.CancelElsewhere {
		script = detached
	}
	cmd := exec.Command("sh", "-c", script, "lashd", t.Spec.Command.Script,
		c.Outputs.path(t, statusFile), strconv.Itoa(MaxOutput/512), c.Outputs.path(t, ".out"))
	cmd.Dir, cmd.Env, cmd.ExtraFiles = about.OpenedDir(), about.Env, []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := proc.Detached(cmd, c.Nonce); err != nil {
		return "", err
	}
	return "process group " + strconv.Itoa(cmd.Process.Pid), nil
}

// halt ends a process group, for as long as somebody in it holds a lock.
func halt(ctx context.Context, group int, lock string) error {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if !locked(lock) {
			return nil
		}
		if err := syscall.Kill(-group, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		unlocked(ctx, lock)
	}
	return context.Cause(ctx)
}

// unlocked waits until nobody holds the lock of a command, for as long as it has to end.
func unlocked(ctx context.Context, lock string) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	for locked(lock) {
		select {
		case <-time.After(haltLook):
		case <-ctx.Done():
			return
		}
	}
}

// haltLook is how often it is seen whether a command has ended that was asked to.
const haltLook = 10 * time.Millisecond

// locked tells whether somebody holds the lock of a file. One that is not there is nobody's.
func locked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(control(f, func(fd int) error { return unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) }), unix.EWOULDBLOCK)
}
