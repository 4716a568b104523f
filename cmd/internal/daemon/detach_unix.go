//go:build !windows

package daemon

import (
	"os/exec"
	"syscall"
)

// Detach makes cmd survive the terminal and the process group of its parent.
func Detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// executableSuffix ends the names of programs.
const executableSuffix = ""
