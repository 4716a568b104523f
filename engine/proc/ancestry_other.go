//go:build !linux

package proc

// Descends cannot inspect other processes on this system.
func Descends(int, string) (why string) { return "" }
