package socket

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/windows"
)

// connectionRefused is the error of dialing a socket file that no process listens on.
const connectionRefused = windows.WSAECONNREFUSED

// makePrivate only creates the directory. Modes mean nothing here; access lists make a directory in
// the user's profile private.
func makePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return checkPrivate(dir)
}

// checkPrivate fails unless dir is a directory.
func checkPrivate(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory (%s)", dir, info.Mode())
	}
	return nil
}

// processExists returns true: lashd trusts the info file here. A stale one only puts a wrong pid in
// an error message.
func processExists(int) bool { return true }

// temporary returns false: no error of accept is known to be temporary here.
func temporary(error) bool { return false }

// credentials reports every peer as this user, because Windows does not report the peer of a
// socket.
func credentials(*net.UnixConn) (Peer, error) { return Peer{UID: os.Geteuid()}, nil }

// NetworkFilesystem returns "": it recognizes none here.
func NetworkFilesystem(string) (string, error) { return "", nil }
