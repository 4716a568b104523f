//go:build !linux && !darwin

package filepoint

import "os"

// changeOf is when a file was changed last; systems without a time that no program can choose tell the one that they have.
func changeOf(fi os.FileInfo) (ns int64, inode uint64) { return fi.ModTime().UnixNano(), 0 }
