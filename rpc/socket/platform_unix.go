//go:build unix

package socket

import (
	"cmp"
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

func credentials(conn *net.UnixConn) (p Peer, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return Peer{}, err
	}
	failed := raw.Control(func(fd uintptr) { p, err = peerOf(int(fd)) })
	return p, cmp.Or(failed, err)
}
