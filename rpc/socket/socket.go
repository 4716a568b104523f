// Package socket provides the daemon's Unix socket and the lock that allows one daemon per data
// directory.
//
// The lock decides which daemon is alive, never an attempt to connect. A daemon that holds the lock
// of its data directory may replace the socket of a crashed one, and no daemon takes over a live
// socket. Only its owner can use the socket. Three independent checks ensure that: the directory is
// private, the socket's mode is 0600, and each side checks the user id of the other before it reads
// a byte.
//
// Locks, listeners and connections are safe for concurrent use. On Windows there are no checks of
// modes and user ids; the access list of the user's profile protects the socket.
package socket

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
)

// maxPath is the maximum length of a socket path in bytes. An address holds 103 bytes on macOS and
// 107 on Linux; the rest is for the suffix of the temporary name.
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

// listenUnix creates a socket file at path and listens on it.
func listenUnix(path string) (*net.UnixListener, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	// Otherwise, closing it would remove any file with that name, even another daemon's socket.
	l.SetUnlinkOnClose(false)
	return l, nil
}
