package watch

import (
	"io/fs"
	"syscall"
)

func (s *Stamp) identify(info fs.FileInfo) {
	if of, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Dev, s.Ino, s.Changed = uint64(of.Dev), of.Ino, of.Ctim.Nano()
	}
}
