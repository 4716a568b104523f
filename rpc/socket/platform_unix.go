//go:build unix

package socket

import (
	"cmp"
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// connectionRefused is the error of dialing a socket file that no process listens on.
const connectionRefused = unix.ECONNREFUSED

// processExists reports whether a process with this pid exists. It counts processes of other users.
func processExists(pid int) bool { return !errors.Is(unix.Kill(pid, 0), unix.ESRCH) }

// temporary reports whether a later accept may succeed: resources ran out, or the client hung up first.
func temporary(err error) bool {
	for _, passes := range []error{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.ENOBUFS, unix.ECONNABORTED} {
		if errors.Is(err, passes) {
			return true
		}
	}
	return false
}

// credentials reads the credentials of the peer of conn.
func credentials(conn *net.UnixConn) (p Peer, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return Peer{}, err
	}
	failed := raw.Control(func(fd uintptr) { p, err = peerOf(int(fd)) })
	return p, cmp.Or(failed, err)
}
