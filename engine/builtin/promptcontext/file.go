package promptcontext

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"lashd/internal/pathresolve"
)

// maxFile is how much of a file is read.
const maxFile = 32 << 10

var (
	errIrregular = errors.New("not a regular file")
	errProtected = errors.New("one of lashd's own files")
	errMoved     = errors.New("replaced while it was opened")
)

// file is the beginning of a small file, as it was when it was read.
type file struct {
	info fs.FileInfo
	text string
}

// reader reads files, and those that did not change only once. It follows no symbolic links.
type reader struct {
	state string
	kept  *shelf
	known map[string]file // by path
}

// read is the file of a name in a directory.
func (r *reader) read(dir, name string) (file, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return file{}, err
	}
	defer root.Close() // a directory handle: nothing is written through it
	return r.readIn(root, dir, name)
}

func (r *reader) readIn(root *os.Root, dir, name string) (file, error) {
	fi, err := root.Lstat(name)
	if err != nil {
		return file{}, err
	}
	path := filepath.Join(dir, name)
	if was, ok := r.known[path]; ok && was.current(fi) {
		return was, nil
	}
	text, err := r.load(root, name, fi)
	if err != nil {
		return file{}, err
	}
	if r.known == nil {
		r.known = map[string]file{}
	}
	r.known[path] = file{fi, text}
	return r.known[path], nil
}

func (f file) current(fi fs.FileInfo) bool {
	return os.SameFile(f.info, fi) && f.info.Size() == fi.Size() && f.info.ModTime().Equal(fi.ModTime())
}

func (r *reader) load(root *os.Root, name string, fi fs.FileInfo) (string, error) {
	if !fi.Mode().IsRegular() {
		return "", errIrregular
	}
	if r.protected(fi) {
		return "", errProtected
	}
	// Not blocking: the name may have become a FIFO since.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	if now, err := f.Stat(); err != nil || !os.SameFile(now, fi) {
		r.kept.keep(f)
		return "", errMoved
	}
	defer f.Close()
	if err := pathresolve.CheckStored(f); err != nil {
		return "", err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	return string(data), err
}

// protected tells by identity whether a file is one that lashd has open: a second link makes no difference.
func (r *reader) protected(fi fs.FileInfo) bool {
	own, _ := os.ReadDir(r.state) // one that is not there has nothing in it
	return slices.ContainsFunc(own, func(e fs.DirEntry) bool {
		mine, err := e.Info()
		return err == nil && os.SameFile(mine, fi)
	})
}

// shelf keeps files open that must not be closed: it is not known what they are, and closing any descriptor of a database
// gives up its locks. Only a path that was swapped while it was opened puts one here.
type shelf struct {
	mu    sync.Mutex
	files []*os.File
}

func (s *shelf) keep(f *os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = append(s.files, f)
}
