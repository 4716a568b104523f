package pathresolve

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// ErrIrregular means that something is a directory, a pipe, a socket or a device.
var ErrIrregular = errors.New("not a regular file")

// OpenRegular opens a file of a directory to be read, if it is the regular file that was seen there. It never waits for a pipe, and refuses
// what the kernel makes up, reading which might not end. Where something else stands by now it fails with ErrReplaced, and gives that, open, to
// replaced: who has files of which no descriptor may be closed keeps it.
func OpenRegular(root *os.Root, name string, seen fs.FileInfo, replaced func(*os.File)) (*os.File, error) {
	if !seen.Mode().IsRegular() {
		return nil, ErrIrregular
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return confirm(f, IdentityOf(seen), replaced)
}

// OpenRegular is OpenRegular in the directory.
func (d Dir) OpenRegular(name string, seen Facts, replaced func(*os.File)) (*os.File, error) {
	if !seen.Mode.IsRegular() {
		return nil, ErrIrregular
	}
	f, err := d.openFile(name)
	if err != nil {
		return nil, err
	}
	return confirm(f, seen.ID, replaced)
}

// OpenPath is OpenRegular by a path that may lead anywhere.
func OpenPath(name string) (*os.File, error) {
	seen, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !seen.Mode().IsRegular() {
		return nil, ErrIrregular
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return confirm(f, IdentityOf(seen), func(f *os.File) { f.Close() })
}

// confirm makes sure that an open file is the one that was seen, and can be read to its end.
func confirm(f *os.File, seen Identity, replaced func(*os.File)) (*os.File, error) {
	now, err := FactsOf(f)
	if err != nil || !seen.Same(now.ID) || !now.Mode.IsRegular() {
		replaced(f)
		return nil, ErrReplaced
	}
	if err := CheckStored(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
