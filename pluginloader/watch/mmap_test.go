//go:build unix

package watch_test

import (
	"os"
	"syscall"
	"testing"
)

// change changes a file through a map of it in memory.
func change(t *testing.T, name, text string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	check(t, err)
	m, err := syscall.Mmap(int(f.Fd()), 0, len(text), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	check(t, err)
	copy(m, text)
	check(t, syscall.Munmap(m), f.Sync(), f.Close())
}
