//go:build !linux

package cli

import "os"

// pollable is nil where a pipe cannot be opened once more.
func pollable(*os.File) *os.File { return nil }
