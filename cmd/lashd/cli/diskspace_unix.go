//go:build unix

package cli

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// freeSpace is how many bytes this user can still write to the disk of dir. It fails if dir cannot be written.
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

// fileLimit is how many files a daemon that starts now may have open.
func fileLimit() int64 {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return int64(min(l.Cur, math.MaxInt64))
}
