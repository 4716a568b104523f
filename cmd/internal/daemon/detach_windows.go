package daemon

import "os/exec"

// Detach does nothing here: a process is not bound to the console of its parent's group.
func Detach(*exec.Cmd) {}

// executableSuffix ends the names of programs.
const executableSuffix = ".exe"
