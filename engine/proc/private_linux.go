package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// Private keeps other processes of this user from reading the memory, the environment and the open files of this one, and from tracing it. Root
// still can. No core is dumped. Children that execute a program are not affected.
func Private() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
}
