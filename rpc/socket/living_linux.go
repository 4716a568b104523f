package socket

import (
	"errors"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// peerPidfd is SO_PEERPIDFD: a descriptor of the process that connected, whatever its pid is used for later.
const peerPidfd = 77

// Living calls look with the pid of the process at the other end, and tells whether the pid was that process's all the time. On kernels
// before 6.5 it tells only whether there was a process.
func Living(conn *net.UnixConn, pid int, look func()) bool {
	fd, err := pidfdOf(conn)
	if err != nil {
		look()
		return !errors.Is(unix.Kill(pid, 0), unix.ESRCH)
	}
	if fd < 0 { // it has been reaped
		return false
	}
	defer unix.Close(fd)
	look()
	return !errors.Is(unix.PidfdSendSignal(fd, 0, nil, 0), unix.ESRCH)
}

// pidfdOf is -1 for a process that is gone. An error means that the kernel does not know of it.
func pidfdOf(conn *net.UnixConn) (fd int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1, err
	}
	if failed := raw.Control(func(s uintptr) { fd, err = unix.GetsockoptInt(int(s), unix.SOL_SOCKET, peerPidfd) }); failed != nil {
		return -1, failed
	}
	if errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.EINVAL) {
		return -1, nil
	}
	return fd, os.NewSyscallError("getsockopt", err)
}
