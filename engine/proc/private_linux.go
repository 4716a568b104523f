package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// Private prevents other processes of this user from tracing this one, and from reading its memory, environment and
// open files. Root still can. It also disables core dumps. The setting does not pass to programs that children execute.
func Private() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
}
