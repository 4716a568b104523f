package daemon

import "os/exec"

// detach does nothing here: a process is not bound to the console of its parent's group.
func detach(*exec.Cmd) {}

// executableSuffix ends the names of programs.
const executableSuffix = ".exe"
