package filepoint

import (
	"os"
	"syscall"
)

// changeOf is when something about a file was changed last, which no program can choose, and its inode.
func changeOf(fi os.FileInfo) (ns int64, inode uint64) {
	if s, ok := fi.Sys().(*syscall.Stat_t); ok {
		return s.Ctimespec.Nano(), s.Ino
	}
	return fi.ModTime().UnixNano(), 0
}
