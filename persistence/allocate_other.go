//go:build !linux

package persistence

import "os"

// allocate gives a file real space.
func allocate(f *os.File, size int64) error { return writeZeros(f, size) }
