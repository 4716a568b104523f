// Package socket provides the daemon's Unix socket and the lock that allows one daemon per data directory.
//
// The lock decides, never an attempt to connect: a daemon that holds the lock of its data directory may replace the socket
// that a crashed one left behind, and a live socket is never taken over. The socket is reachable for its owner only, by three
// independent means: the directory is private, the socket's mode is 0600, and each side checks the user id of the other
// before a byte is read.
//
// Locks, listeners and connections are safe for concurrent use. On Windows the checks of modes and of users are left out:
// there the access list of the user's profile is what keeps others away.
package socket

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
)

// maxPath leaves room for the temporary name: the address holds 103 bytes on macOS, 107 on Linux.
const maxPath = 100

// ErrNotListening means that no daemon listens on the path. Starting a daemon may help. Other errors of Dial need other fixes.
var ErrNotListening = errors.New("no daemon is listening")

// resolve makes path absolute and checks that it fits into a socket address.
func resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if len(path) > maxPath {
		return "", fmt.Errorf("socket path %s has %d bytes, but the limit is %d; set LASHD_SOCKET to a shorter path", path, len(path), maxPath)
	}
	return path, nil
}

func listenUnix(path string) (*net.UnixListener, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	// Otherwise, closing it would remove any file with that name, even another daemon's socket.
	l.SetUnlinkOnClose(false)
	return l, nil
}
