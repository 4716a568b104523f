package proc

import (
	"os/exec"
	"syscall"
)

// detach gives the child its own session, and a death that follows ours.
func detach(cmd *exec.Cmd, terminal bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: terminal, Pdeathsig: syscall.SIGKILL}
}
