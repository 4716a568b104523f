package proc

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// dropPrivileges leaves root nothing that others have not: some of it goes past what confines. Who has no privileges has
// none to drop.
func dropPrivileges() error {
	for capability := uintptr(0); ; capability++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM) {
			break // that was the last one, or none can be dropped
		}
		if err != nil {
			return os.NewSyscallError("prctl", err)
		}
	}
	none := [2]unix.CapUserData{}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return os.NewSyscallError("capset", unix.Capset(&header, &none[0]))
}
