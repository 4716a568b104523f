//go:build !linux

package content

import "os"

// runnable is the place of a program: a file that is open cannot be run here.
func runnable(f *os.File) string { return f.Name() }
