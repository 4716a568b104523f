package watch

import (
	"io/fs"
	"syscall"
	"time"
)

// identity tells which file it is, and when anything about it was changed last. That time cannot be set by hand.
func identity(info fs.FileInfo) (file [2]uint64, changed time.Time) {
	s := info.Sys().(*syscall.Stat_t)
	return [2]uint64{uint64(s.Dev), s.Ino}, time.Unix(s.Ctim.Unix())
}
