//go:build unix

package socket

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

const connectionRefused = unix.ECONNREFUSED

// processExists is true also for a process that we may not signal.
func processExists(pid int) bool { return !errors.Is(unix.Kill(pid, 0), unix.ESRCH) }

// passing reports whether a later accept may succeed: resources ran out, or the client hung up first.
func passing(err error) bool {
	for _, passes := range []error{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.ENOBUFS, unix.ECONNABORTED} {
		if errors.Is(err, passes) {
			return true
		}
	}
	return false
}

// peerUID returns the effective user of the other end, as it was when that end connected or began to listen.
func peerUID(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1, err
	}
	var uid int
	var credErr error
	if err := raw.Control(func(fd uintptr) { uid, credErr = credential(int(fd)) }); err != nil {
		return -1, err
	}
	return uid, credErr
}
