package pathresolve

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// ErrIrregular means that a path is a directory, a pipe, a socket or a device.
var ErrIrregular = errors.New("not a regular file")

// OpenRegular opens a regular file of a directory for reading, provided that it is still the file
// seen. It never waits for a pipe, and rejects files that the kernel generates, because reading
// them may not end.
//
// If another file has taken its place it fails with ErrReplaced and passes the open file to
// replaced, which must close or keep it. A process that must not close a descriptor of certain
// files, such as its database, keeps it.
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

// OpenRegular is the function OpenRegular for a file of d.
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

// OpenPath is OpenRegular for a path anywhere, following links.
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

// confirm returns f if it is the file seen and is stored. Otherwise it disposes of f.
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
