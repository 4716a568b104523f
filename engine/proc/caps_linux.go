package proc

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// dropPrivileges removes all capabilities from the thread, because some of them bypass the sandbox. It does nothing for
// a process without privileges.
func dropPrivileges() error {
	for capability := uintptr(0); ; capability++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM) {
			break // past the last capability, or not allowed to drop any
		}
		if err != nil {
			return os.NewSyscallError("prctl", err)
		}
	}
	none := [2]unix.CapUserData{}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return os.NewSyscallError("capset", unix.Capset(&header, &none[0]))
}
