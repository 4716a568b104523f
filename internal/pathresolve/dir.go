package pathresolve

import (
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
)

// Dir is an open directory in which names are looked up one by one, and no link is followed. It asks the system once for each file, which is
// most of what it costs to go through a large tree. It is closed by Close.
type Dir struct{ handle }

// Facts are what the system says of a file.
type Facts struct {
	Mode     fs.FileMode
	Size     int64
	Modified int64
	Changed  int64 // when something about it was changed last, which no program can choose
	Inode    uint64
	ID       Identity
}

// ErrReplaced means that something else stands at a path than a moment before.
var ErrReplaced = errors.New("it was replaced while it was looked at")

// OpenReal opens a directory by an absolute path that has no links in it. If it has one by now, it fails with ErrReplaced where the system can
// tell, as Linux does.
func OpenReal(at string) (Dir, error) {
	d, err := openDir(at)
	if err == nil && d.path(at) != at {
		d.Close()
		return Dir{}, ErrReplaced
	}
	return d, err
}

// EnterRoot opens a directory in another one, if it is the one that was seen there. A link is none.
func EnterRoot(at *os.Root, name string, seen fs.FileInfo) (*os.Root, error) {
	// The dot makes the system insist on a directory: a pipe that was put there meanwhile would be waited for, and a database would lose its
	// locks when it is closed.
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

const namesAtOnce = 1024 // of a directory

// inParts goes through a directory that is open, some names at a time: there may be very many, of which few count.
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
