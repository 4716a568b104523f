package content

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncAll syncs the file system that contains dir. done is false if the system cannot do that.
func syncAll(dir string) (done bool, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return false, err
	}
	return true, errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}
