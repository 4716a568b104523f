package proc

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// auditArch is the architecture in system call filters; 0: not supported, so there is no sandbox.
var auditArch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]

// filters reports whether the kernel supports system call filters.
func filters() bool {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0
}

// Offsets in seccomp_data, the input of a filter.
const (
	callNumber = 0
	callArch   = 4
	firstWord  = 16 // lower half of the first argument; both architectures are little-endian
	secondWord = 24
)

const (
	// x32 is the first number of the x32 system calls on amd64, which duplicate the ordinary ones.
	x32       = 0x40000000 // calls from this number on are the same ones once more, on amd64
	allowed   = unix.SECCOMP_RET_ALLOW
	refused   = unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)
	forbidden = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	notThere  = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// filter is a system call filter that closes gaps of Landlock:
//   - Limits, priorities and processor affinity of other processes cannot be changed, unless the child sees none. A limit on processor time
//     would kill them.
//   - No sockets can be created; with network, only internet sockets. Landlock does not cover UDP, and its older
//     versions do not cover sockets with a path, such as lashd's own. A broker can make an exception for connections between the
//     programs of a View. Socket pairs with connections are allowed: they lead nowhere else.
//     Pairs for single messages are not: they can send to any path.
//   - io_uring, which could create sockets in another way, is not available.
//   - clone3 is not available, because it can start a process in another cgroup without writing a file, and Landlock
//     only covers the write. The C library falls back to clone.
//   - No user namespace can be made, because a process has all privileges in its own.
//   - Text cannot be put into the input of a terminal, where the shell of a person would run it.
//   - Calls that only system programs need are refused: mounts, other namespaces, kernel keys, tracing of the kernel.
type filter struct {
	families     []uint32 // address families of sockets that can be created
	ownProcesses bool     // the child is in a process namespace of its own
	local        bool     // local sockets with connections can be created, and a broker connects all sockets
}

// filter returns the filter of the sandbox. apart says that the child is in a process namespace of its own.
func (s *Sandbox) filter(apart bool) filter {
	f := filter{ownProcesses: apart, local: s.alone() && canBroker()}
	if s.Network || s.View != nil {
		f.families = []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} // netlink is needed to list addresses
	}
	return f
}

// install installs the filter for the thread. It returns where calls for the broker arrive; -1: there are no local sockets. The system may
// refuse them, for example if a container has a broker of its own.
func (f filter) install() (listener int, err error) {
	if f.local {
		// Without the second flag, a signal for a program would make it connect twice.
		if listener, err = f.set(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV); err == nil {
			return listener, nil
		}
		f.local = false
	}
	_, err = f.set(0)
	return -1, err
}

// set makes the system call that installs the filter.
func (f filter) set(flags uintptr) (int, error) {
	lines := f.program()
	program := unix.SockFprog{Len: uint16(len(lines)), Filter: &lines[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(lines)
	if errno != 0 {
		return -1, os.NewSyscallError("seccomp", errno)
	}
	return int(fd), nil
}

// program returns the filter program.
func (f filter) program() []unix.SockFilter {
	lines := []unix.SockFilter{
		load(callArch), unless(unix.BPF_JEQ, auditArch), answer(unix.SECCOMP_RET_KILL_PROCESS),
		load(callNumber),
		when(unix.BPF_JGE, x32), answer(notThere),
		when(unix.BPF_JEQ, unix.SYS_IO_URING_SETUP), answer(notThere),
		when(unix.BPF_JEQ, unix.SYS_CLONE3), answer(notThere),
	}
	for _, call := range []uint32{
		unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSMOUNT,
		unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_BPF, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_PERF_EVENT_OPEN,
		unix.SYS_USERFAULTFD,
	} {
		lines = append(lines, when(unix.BPF_JEQ, call), answer(forbidden))
	}
	for _, call := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		lines = append(lines, only(call, load(firstWord), when(unix.BPF_JSET, unix.CLONE_NEWUSER), answer(forbidden), answer(allowed))...)
	}
	lines = append(lines, only(unix.SYS_IOCTL, load(secondWord), when(unix.BPF_JEQ, unix.TIOCSTI), answer(forbidden),
		when(unix.BPF_JEQ, unix.TIOCLINUX), answer(forbidden), answer(allowed))...)
	if !f.ownProcesses {
		lines = append(lines, othersUnchanged()...)
	}
	return append(lines, f.sockets()...)
}

// othersUnchanged refuses to change the limits and priorities of other processes.
func othersUnchanged() (lines []unix.SockFilter) {
	for _, call := range []uint32{
		unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR,
	} {
		lines = append(lines, only(call, load(firstWord), when(unix.BPF_JEQ, 0), answer(allowed), answer(forbidden))...)
	}
	for call, process := range map[uint32]uint32{unix.SYS_SETPRIORITY: unix.PRIO_PROCESS, unix.SYS_IOPRIO_SET: ioprioProcess} {
		lines = append(lines, only(call, load(firstWord), unless(unix.BPF_JEQ, process), answer(forbidden),
			load(secondWord), when(unix.BPF_JEQ, 0), answer(allowed), answer(forbidden))...)
	}
	return lines
}

// sockets decides about sockets, and allows all other calls.
func (f filter) sockets() (lines []unix.SockFilter) {
	lines = append(lines, only(unix.SYS_SOCKETPAIR, append([]unix.SockFilter{load(firstWord), unless(unix.BPF_JEQ, unix.AF_UNIX), answer(refused)}, connected()...)...)...)
	if f.local {
		lines = append(lines, when(unix.BPF_JEQ, unix.SYS_CONNECT), answer(unix.SECCOMP_RET_USER_NOTIF))
	}
	lines = append(lines, unless(unix.BPF_JEQ, unix.SYS_SOCKET), answer(allowed), load(firstWord))
	if f.local {
		lines = append(lines, only(unix.AF_UNIX, connected()...)...)
	}
	for _, family := range f.families {
		lines = append(lines, when(unix.BPF_JEQ, family), answer(allowed))
	}
	return append(lines, answer(refused))
}

// connected allows local sockets with connections only, by the type in the second argument. The others can send to any path at any time.
func connected() []unix.SockFilter {
	const kind = 0xf // the other bits are options
	return []unix.SockFilter{
		load(secondWord), {Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: kind},
		when(unix.BPF_JEQ, unix.SOCK_STREAM), answer(allowed), when(unix.BPF_JEQ, unix.SOCK_SEQPACKET), answer(allowed), answer(refused),
	}
}

// ioprioProcess is IOPRIO_WHO_PROCESS of the kernel.
const ioprioProcess = 1

// only runs the lines if the loaded word is the given one. The lines must end the filter.
func only(word uint32, lines ...unix.SockFilter) []unix.SockFilter {
	skip := unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | unix.BPF_JEQ, Jf: uint8(len(lines)), K: word}
	return append([]unix.SockFilter{skip}, lines...)
}

// load loads a 32-bit word of seccomp_data.
func load(place uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: place}
}

// when continues with the next instruction if the comparison is true, else skips it.
func when(comparison uint16, word uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | comparison, Jt: 0, Jf: 1, K: word}
}

// unless is the opposite of when.
func unless(comparison uint16, word uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | comparison, Jt: 1, Jf: 0, K: word}
}

// answer ends the filter with an action.
func answer(action uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
}
