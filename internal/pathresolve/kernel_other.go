//go:build !linux

package pathresolve

import (
	"errors"
	"os"
)

// ErrKernelFile means that a file is not stored anywhere. It is of Linux only.
var ErrKernelFile = errors.New("a file of the kernel")

// CheckStored never fails: only Linux has regular files that are not stored.
func CheckStored(*os.File) error { return nil }
