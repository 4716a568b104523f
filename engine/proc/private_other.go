//go:build !linux

package proc

// Private does nothing on this system.
func Private() error { return nil }
