package pathresolve

import (
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
)

// Dir is an open directory. Names are looked up in it one at a time, and links are not followed.
// Replacing a directory above it by a link therefore cannot redirect a lookup. Each lookup is one
// system call, which is most of the cost of walking a large tree. The caller closes it with Close.
type Dir struct{ handle }

// Facts is what the system reports about a file. Times are nanoseconds since 1970.
type Facts struct {
	Mode     fs.FileMode
	Size     int64
	Modified int64
	Changed  int64 // time of the last change of the file or its metadata, which programs cannot set
	Inode    uint64
	ID       Identity
}

// ErrReplaced means that a path leads to a different file than a moment before.
var ErrReplaced = errors.New("it was replaced while it was looked at")

// OpenReal opens a directory by an absolute path without links. If a part of the path has become a
// link, it fails with ErrReplaced on systems that can tell, such as Linux.
func OpenReal(at string) (Dir, error) {
	d, err := openDir(at)
	if err == nil && d.path(at) != at {
		d.Close()
		return Dir{}, ErrReplaced
	}
	return d, err
}

// EnterRoot opens a subdirectory, provided that it is still the directory seen. It fails for a
// link.
func EnterRoot(at *os.Root, name string, seen fs.FileInfo) (*os.Root, error) {
	// With the dot the system opens only a directory. Opening a pipe would block, and closing a database file would release
	// the locks that this process holds on it.
	next, err := at.OpenRoot(name + "/.")
	if err != nil {
		return nil, err
	}
	now, err := next.Stat(".")
	if err == nil && !os.SameFile(seen, now) {
		err = ErrReplaced
	}
	if err != nil {
		next.Close()
		return nil, err
	}
	return next, nil
}

// namesAtOnce is the number of names that one system call reads from a directory.
const namesAtOnce = 1024 // of a directory

// inParts iterates over an open directory, some names at a time, because a directory may have very
// many.
func inParts(dir *os.File) iter.Seq2[os.DirEntry, error] {
	return func(yield func(os.DirEntry, error) bool) {
		for {
			entries, err := dir.ReadDir(namesAtOnce)
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					yield(nil, err)
				}
				return
			}
		}
	}
}
