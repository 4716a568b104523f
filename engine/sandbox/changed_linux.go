package sandbox

import (
	"io/fs"
	"syscall"
	"time"
)

// changed returns the time of the last change of a file or its metadata, which programs cannot set.
func changed(info fs.FileInfo) time.Time {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(stat.Ctim.Unix())
	}
	return info.ModTime()
}
