//go:build !linux

package rpc

// residentBytes is not known here.
func residentBytes() int64 { return 0 }

func openFiles() int { return 0 }

// fileLimit is not known here.
func fileLimit() int64 { return 0 }
