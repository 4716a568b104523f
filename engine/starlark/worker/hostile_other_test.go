//go:build !linux

package worker_test

// allocate is for systems on which the process limits its memory.
func allocate() {}
