//go:build !windows

package cli

import (
	"os/exec"
	"syscall"
)

// detach lets a daemon outlive the terminal and the group of whoever started it.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
