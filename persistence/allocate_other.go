//go:build !linux

package persistence

import "os"

// allocate reserves size bytes of disk space for a file by writing zeros.
func allocate(f *os.File, size int64) error { return writeZeros(f, size) }
