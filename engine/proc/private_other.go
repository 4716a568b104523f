//go:build !linux

package proc

// Private does nothing here.
func Private() error { return nil }
