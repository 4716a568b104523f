package socket

import (
	"os"

	"github.com/gofrs/flock"
)

// dirLock is a lock on a file beside the lock file. Windows does not allow deleting an open file.
type dirLock struct{ file *flock.Flock }

// openDirLock prepares the lock of the directory that contains the lock file. Only try creates the
// file.
func openDirLock(lockFile string) (*dirLock, error) {
	return &dirLock{flock.New(lockFile+".dir", flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))}, nil
}

func (l *dirLock) try() (bool, error) { return l.file.TryLock() }

func (l *dirLock) close() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}
