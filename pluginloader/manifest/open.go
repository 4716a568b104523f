package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"lashd/internal/pathresolve"
	"os"
	"syscall"
)

// errChanged means that a file changed while it was read.
var errChanged = errors.New("it changed while it was read")

// openRegular opens a regular file and nothing else: opening a pipe would block, and reading a
// kernel file might not end. It follows a link that stays inside root. The caller closes the file.
func openRegular(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err == nil {
		err = pathresolve.CheckStored(f)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// readFile reads a file up to MaxFile bytes, and one byte more of a larger file, so that the caller
// notices.
func readFile(root *os.Root, name string) ([]byte, error) {
	info, err := root.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		return nil, err
	}
	f, _, err := openRegular(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxFile+1))
}
