//go:build unix

package socket

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// dirLock is a lock on a directory itself. Nothing that is deleted in the directory, or renamed, gives it away.
type dirLock struct{ dir *os.File }

// openDirLock opens the directory that the lock file is in. Programs that this process starts do not get the descriptor.
func openDirLock(lockFile string) (*dirLock, error) {
	dir, err := os.Open(filepath.Dir(lockFile))
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
