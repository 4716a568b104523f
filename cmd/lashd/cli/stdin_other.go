//go:build !linux

package cli

import "os"

// pollable returns nil, because pipes cannot be opened a second time here. Callers
// then read through a goroutine.
func pollable(*os.File) *os.File { return nil }
