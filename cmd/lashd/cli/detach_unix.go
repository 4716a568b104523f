//go:build !windows

package cli

import (
	"os/exec"
	"syscall"
)

// detach makes cmd survive the terminal and the process group of its parent.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
