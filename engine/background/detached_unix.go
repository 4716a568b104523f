//go:build unix

package background

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lashd/rpc/protocol"
)

// Detach begins a detached command, and gives its reference: what Halt finds it by. What it starts has no mark: no sweep finds it.
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
	about := c.command(t.Spec.Command, cwd)
	cmd := exec.Command("sh", "-c", detached, "lashd", t.Spec.Command.Script,
		c.Outputs.path(t, statusFile), strconv.Itoa(MaxOutput/512), c.Outputs.path(t, ".out"))
	cmd.Dir, cmd.Env, cmd.ExtraFiles = about.Dir, about.Env, []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Run(); err != nil {
		return "", err
	}
	return groupRef + strconv.Itoa(cmd.Process.Pid), nil
}

// groupRef is followed by the id of the process group of a detached command.
const groupRef = "process group "

// Halt asks a detached command to end, with all that has not left its group, and kills it if it does not. It returns once that is
// so, or ctx is done. As long as the lock is held the group is there, and nobody else's.
func (c *Commands) Halt(ctx context.Context, t *protocol.Task) error {
	group, err := strconv.Atoi(strings.TrimPrefix(t.Ref, groupRef))
	if err != nil || group <= 1 {
		return fmt.Errorf("%q is no process group", t.Ref)
	}
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if !locked(c.Outputs.path(t, lockFile)) {
			return nil
		}
		if err := syscall.Kill(-group, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		c.unlocked(ctx, t)
	}
	return context.Cause(ctx)
}

// unlocked waits until nobody holds the lock of a command, for as long as it has to end.
func (c *Commands) unlocked(ctx context.Context, t *protocol.Task) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	for locked(c.Outputs.path(t, lockFile)) {
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
