//go:build unix

package socket

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// dirLock is a lock on a directory itself. Nothing that is deleted in the directory, or renamed, gives it away.
type dirLock struct{ dir *os.File }

// openDirLock opens a directory to lock it. Programs that this process starts do not get the descriptor.
func openDirLock(path string) (*dirLock, error) {
	dir, err := os.Open(path)
	return &dirLock{dir}, err
}

// try reports whether this process has the lock now.
func (l *dirLock) try() (bool, error) {
	for {
		err := unix.Flock(int(l.dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, &os.PathError{Op: "flock", Path: l.dir.Name(), Err: err}
		}
	}
}

// close gives the lock up.
func (l *dirLock) close() error {
	if l == nil {
		return nil
	}
	return l.dir.Close()
}
