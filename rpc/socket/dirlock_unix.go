//go:build unix

package socket

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// dirLock is a lock on a directory itself. Deleting or renaming files in the directory does not
// release it.
type dirLock struct{ dir *os.File }

// openDirLock opens the directory that contains the lock file. Child processes do not inherit the
// descriptor, so the lock ends with this process.
func openDirLock(lockFile string) (*dirLock, error) {
	dir, err := os.Open(filepath.Dir(lockFile))
	return &dirLock{dir}, err
}

// try takes the lock without waiting, and reports whether this process has it.
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

// close releases the lock. A nil dirLock has none.
func (l *dirLock) close() error {
	if l == nil {
		return nil
	}
	return l.dir.Close()
}
