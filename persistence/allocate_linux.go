package persistence

import (
	"errors"
	"os"
	"syscall"
)

// allocate reserves size bytes of disk space for a file, so that a later full disk cannot take
// them. On a file system without that call it writes zeros.
func allocate(f *os.File, size int64) error {
	err := syscall.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS) {
		return writeZeros(f, size)
	}
	return err
}
