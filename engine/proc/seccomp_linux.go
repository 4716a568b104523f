package proc

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// auditArch is how a filter knows system calls of this machine; 0: it does not, and there is no sandbox.
var auditArch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]

// filters tells whether the kernel filters system calls.
func filters() bool {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0
}

// Places in what a filter is given of a call.
const (
	callNumber = 0
	callArch   = 4
	firstWord  = 16 // of the first argument, the lower half on the machines above
	secondWord = 24
)

const (
	x32       = 0x40000000 // calls from this number on are the same ones once more, on amd64
	allowed   = unix.SECCOMP_RET_ALLOW
	refused   = unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)
	forbidden = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	notThere  = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// filterSockets lets the thread change limits, priorities and processors of no process but its own: Landlock guards none of that, and a limit
// of processor time kills. It also lets the thread make no sockets; with network, those of the internet only. Landlock knows nothing of UDP, and
// before its newest versions nothing of sockets that have a path, which lashd's own has. Pairs of sockets stay: they lead
// nowhere else. io_uring, which would make sockets by another way, is not there. Nor is clone3, which starts a process in another cgroup
// without writing to a file: Landlock guards only writing. The C library then uses clone.
func filterSockets(network bool) error {
	families := []uint32{}
	if network {
		families = []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} // the last tells which addresses there are
	}
	filter := socketFilter(families)
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(filter)
	if errno != 0 {
		return os.NewSyscallError("seccomp", errno)
	}
	return nil
}

func socketFilter(families []uint32) []unix.SockFilter {
	filter := []unix.SockFilter{
		load(callArch), unless(unix.BPF_JEQ, auditArch), answer(unix.SECCOMP_RET_KILL_PROCESS),
		load(callNumber),
		when(unix.BPF_JGE, x32), answer(notThere),
		when(unix.BPF_JEQ, unix.SYS_IO_URING_SETUP), answer(notThere),
		when(unix.BPF_JEQ, unix.SYS_CLONE3), answer(notThere),
	}
	for _, call := range []uint32{
		unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR,
	} {
		filter = append(filter, only(call, load(firstWord), when(unix.BPF_JEQ, 0), answer(allowed), answer(forbidden))...)
	}
	for call, process := range map[uint32]uint32{unix.SYS_SETPRIORITY: unix.PRIO_PROCESS, unix.SYS_IOPRIO_SET: ioprioProcess} {
		filter = append(filter, only(call, load(firstWord), unless(unix.BPF_JEQ, process), answer(forbidden),
			load(secondWord), when(unix.BPF_JEQ, 0), answer(allowed), answer(forbidden))...)
	}
	filter = append(filter, unless(unix.BPF_JEQ, unix.SYS_SOCKET), answer(allowed), load(firstWord))
	for _, family := range families {
		filter = append(filter, when(unix.BPF_JEQ, family), answer(allowed))
	}
	return append(filter, answer(refused))
}

// ioprioProcess is IOPRIO_WHO_PROCESS.
const ioprioProcess = 1

// only goes through the lines if the word is that of a call. They answer it.
func only(call uint32, lines ...unix.SockFilter) []unix.SockFilter {
	skip := unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | unix.BPF_JEQ, Jf: uint8(len(lines)), K: call}
	return append([]unix.SockFilter{skip}, lines...)
}

func load(place uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: place}
}

// when goes on with the next line if the word compares so, else with the one after it.
func when(comparison uint16, word uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | comparison, Jt: 0, Jf: 1, K: word}
}

// unless is the opposite of when.
func unless(comparison uint16, word uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | comparison, Jt: 1, Jf: 0, K: word}
}

func answer(action uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
}
