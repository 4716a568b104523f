package proc

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// detach gives the child its own session, and a death that follows ours.
func detach(cmd *exec.Cmd, terminal bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: terminal, Pdeathsig: syscall.SIGKILL}
}

// awaitLeader returns when the leader has exited, and leaves it unreaped. Other errors than EINTR mean that there is nothing
// to wait for.
func (g group) awaitLeader() {
	for {
		err := unix.Waitid(unix.P_PID, g.leader, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}
