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

// Detach starts a detached command. ref describes it to people. The command has no
// supervisor process of lashd, and proc.Sweep does not find it. It continues when lashd
// ends.
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
	about, _, err := c.command(t.Spec.Command, cwd)
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

// halt ends a process group while a process in it holds the lock.
func halt(ctx context.Context, group int, lock string) error {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if !locked(lock) {
			return nil
		}
		if err := syscall.Kill(-group, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		waitUnlocked(ctx, lock)
	}
	return context.Cause(ctx)
}

// waitUnlocked waits until the lock is free, ctx is done, or the grace period has passed.
func waitUnlocked(ctx context.Context, lock string) {
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

// haltLook is the interval at which waitUnlocked checks the lock.
const haltLook = 10 * time.Millisecond

// locked reports whether a process holds the lock of a file. A missing file is not locked.
func locked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(control(f, func(fd int) error { return unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) }), unix.EWOULDBLOCK)
}
