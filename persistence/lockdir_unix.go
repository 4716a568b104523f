//go:build unix

package persistence

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockDir locks a directory without waiting. held means that another process has the lock or that
// the directory belongs to another user; unlock is then nil. The lock ends with the process.
func lockDir(path string) (unlock func() error, held bool, err error) {
	d, err := os.Open(path)
	if err != nil {
		return nil, false, err
	}
	var info unix.Stat_t
	err = unix.Fstat(int(d.Fd()), &info)
	if err == nil && int(info.Uid) != os.Geteuid() {
		return nil, true, d.Close() // another user's
	}
	if err == nil {
		err = unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, true, d.Close()
	}
	if err != nil {
		return nil, false, errors.Join(err, d.Close())
	}
	return d.Close, false, nil
}
