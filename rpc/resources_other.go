//go:build !linux

package rpc

// residentBytes returns 0; the value is unknown on this system.
func residentBytes() int64 { return 0 }

// openFiles returns 0; the value is unknown on this system.
func openFiles() int { return 0 }

// fileLimit returns 0; the value is unknown on this system.
func fileLimit() int64 { return 0 }
