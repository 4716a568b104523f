package socket

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/windows"
)

const connectionRefused = windows.WSAECONNREFUSED

// makePrivate only creates: modes say nothing here, and a directory in the user's profile is private by its access list.
func makePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return checkPrivate(dir)
}

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

// processExists believes the info file: a stale one costs a wrong pid in an error message.
func processExists(int) bool { return true }

func passing(error) bool { return false }

// credentials takes every peer for ours: Windows does not report who is at the other end of a socket.
func credentials(*net.UnixConn) (Peer, error) { return Peer{UID: os.Geteuid()}, nil }

// NetworkFilesystem knows of none here.
func NetworkFilesystem(string) (string, error) { return "", nil }
