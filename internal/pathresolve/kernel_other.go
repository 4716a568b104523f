//go:build !linux

package pathresolve

import (
	"errors"
	"os"
)

// ErrKernelFile means that the kernel generates a file's content. It occurs only on Linux.
var ErrKernelFile = errors.New("a file of the kernel")

// CheckStored never fails: only Linux has regular files that are not stored.
func CheckStored(*os.File) error { return nil }
