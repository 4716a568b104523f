package proc

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// detach gives the child its own session. macOS has no parent-death signal: if this process is killed, its children
// notice only the closed stdin.
func detach(cmd *exec.Cmd, terminal bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: terminal}
}

// awaitLeader returns when the leader has exited, and leaves it unreaped. It uses kqueue because waitid on macOS also
// returns for a stopped process. If kqueue fails, the leader is already a zombie or this process is out of descriptors;
// then the leader is killed with its group rather than left running.
func (g group) awaitLeader() {
	queue, err := unix.Kqueue()
	if err != nil {
		return
	}
	defer unix.Close(queue)
	unix.CloseOnExec(queue)
	exit := []unix.Kevent_t{{Ident: uint64(g.leader), Filter: unix.EVFILT_PROC, Flags: unix.EV_ADD | unix.EV_ONESHOT, Fflags: unix.NOTE_EXIT}}
	for {
		n, err := unix.Kevent(queue, exit, make([]unix.Kevent_t, 1), nil)
		if err != unix.EINTR || n > 0 {
			return
		}
	}
}

func (g group) close() {}
