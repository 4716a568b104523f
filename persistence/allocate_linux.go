package persistence

import (
	"errors"
	"os"
	"syscall"
)

// allocate gives a file real space. File systems that can't promise it get zeros written.
func allocate(f *os.File, size int64) error {
	err := syscall.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS) {
		return writeZeros(f, size)
	}
	return err
}
