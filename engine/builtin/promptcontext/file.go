package promptcontext

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"lashd/internal/pathresolve"
)

// maxFile is how much of a file is read.
const maxFile = 32 << 10

var errProtected = errors.New("one of lashd's own files")

// file is the beginning of a small file, as it was when it was read.
type file struct {
	is   pathresolve.Facts
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
	at, err := pathresolve.OpenReal(dir)
	if err != nil {
		return file{}, err
	}
	defer at.Close()
	return r.readIn(at, dir, name)
}

func (r *reader) readIn(at pathresolve.Dir, dir, name string) (file, error) {
	is, err := at.Stat(name)
	if err != nil {
		return file{}, err
	}
	path := filepath.Join(dir, name)
	if was, ok := r.known[path]; ok && was.current(is) {
		return was, nil
	}
	text, err := r.load(at, name, is)
	if err != nil {
		return file{}, err
	}
	if r.known == nil {
		r.known = map[string]file{}
	}
	r.known[path] = file{is, text}
	return r.known[path], nil
}

func (f file) current(is pathresolve.Facts) bool {
	return f.is.ID.Same(is.ID) && f.is.Size == is.Size && f.is.Modified == is.Modified
}

func (r *reader) load(at pathresolve.Dir, name string, is pathresolve.Facts) (string, error) {
	if r.protected(is.ID) {
		return "", errProtected
	}
	f, err := at.OpenRegular(name, is, r.kept.keep)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	return string(data), err
}

// protected tells by identity whether a file is one that lashd has open: a second link makes no difference.
func (r *reader) protected(id pathresolve.Identity) bool {
	own, _ := os.ReadDir(r.state) // one that is not there has nothing in it
	return slices.ContainsFunc(own, func(e fs.DirEntry) bool {
		mine, err := e.Info()
		return err == nil && id.Same(pathresolve.IdentityOf(mine))
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
