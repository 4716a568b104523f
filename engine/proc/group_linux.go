package proc

import (
	"os/exec"
	"syscall"
)

// detach gives the child its own session, and kills it when the parent thread dies.
func detach(cmd *exec.Cmd, terminal bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: terminal, Pdeathsig: syscall.SIGKILL}
}
