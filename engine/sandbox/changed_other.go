//go:build !linux

package sandbox

import (
	"io/fs"
	"time"
)

// changed returns the time of the last change of a file. Only Linux has sandboxes for commands, so its precision does not matter.
func changed(info fs.FileInfo) time.Time { return info.ModTime() }
