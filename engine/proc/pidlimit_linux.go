package proc

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// reservedIDs is how many process ids the kernel does not give out a second time.
const reservedIDs = 300

// ownThreads is at least the number of threads of a gate that stays. They count as threads of the user.
const ownThreads = 16

// limitProcesses limits the processes and threads in the process namespace of this process. The kernel exempts root from RLIMIT_NPROC; the
// number of process ids also holds for root. Before Linux 6.14 that number is one of the whole system, and there is no limit for root.
func limitProcesses(most int64) {
	if most <= 0 || os.Getuid() != 0 || !kernelSince(6, 14) {
		return
	}
	fs, err := unix.Fsopen("proc", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return
	}
	defer unix.Close(fs)
	if unix.FsconfigCreate(fs) != nil {
		return
	}
	dir, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(dir)
	// Machines with very many processors refuse so few.
	_ = os.WriteFile(fmt.Sprintf("/proc/self/fd/%d/sys/kernel/pid_max", dir), fmt.Append(nil, most+reservedIDs), 0)
}

// kernelSince reports whether the kernel has at least a version.
func kernelSince(major, minor int) bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return false
	}
	var a, b int
	n, _ := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &a, &b)
	return n == 2 && (a > major || a == major && b >= minor)
}
