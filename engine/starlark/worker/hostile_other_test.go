//go:build !linux || race

package worker_test

// allocate is for systems on which the process limits its memory.
func allocate() {}
