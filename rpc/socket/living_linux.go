package socket

import (
	"errors"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// peerPidfd is SO_PEERPIDFD. It returns a descriptor of the process that connected, even if its pid
// is reused later.
const peerPidfd = 77

// Living calls look, and reports whether pid belonged to the connected process all that time, so
// that look has not examined another process with a reused pid. On kernels before 6.5 it only
// reports whether some process has the pid.
func Living(conn *net.UnixConn, pid int, look func()) bool {
	fd, err := pidfdOf(conn)
	if err != nil {
		look()
		return !errors.Is(unix.Kill(pid, 0), unix.ESRCH)
	}
	if fd < 0 { // the process has ended and was waited for
		return false
	}
	defer unix.Close(fd)
	look()
	return !errors.Is(unix.PidfdSendSignal(fd, 0, nil, 0), unix.ESRCH)
}

// pidfdOf returns a pidfd of the connected process, or -1 if the process is gone. An error means
// that the kernel does not support SO_PEERPIDFD.
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
