package watch

import (
	"io/fs"
	"syscall"
)

// identify fills in the fields that only the system's own stat result has.
func (s *Stamp) identify(info fs.FileInfo) {
	if of, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Dev, s.Ino, s.Changed = uint64(of.Dev), of.Ino, of.Ctimespec.Nano()
	}
}
