//go:build unix

package cli

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// freeSpace returns the bytes that this user can still write to the disk of dir.
// It returns an error if dir is not writable. Quotas are not considered.
func freeSpace(dir string) (int64, error) {
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return 0, fmt.Errorf("%s cannot be written: %w", dir, err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return int64(min(fs.Bavail*uint64(fs.Bsize), math.MaxInt64)), nil
}

// fileLimit returns the limit of open files for a daemon that starts now, or 0 if
// it is unknown.
func fileLimit() int64 {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return int64(min(l.Cur, math.MaxInt64))
}
