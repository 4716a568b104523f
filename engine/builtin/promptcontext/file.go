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

// maxFile is the number of bytes that are read of a file.
const maxFile = 32 << 10

var errProtected = errors.New("the file belongs to lashd")

// file is the beginning of a small file, with its metadata at that time.
type file struct {
	is   pathresolve.Facts
	text string
}

// reader reads files and caches them until they change. It follows no symbolic links. It
// belongs to one goroutine.
type reader struct {
	state string
	kept  *shelf
	known map[string]file // by path
}

// read returns the file called name in a directory.
func (r *reader) read(dir, name string) (file, error) {
	at, err := pathresolve.OpenReal(dir)
	if err != nil {
		return file{}, err
	}
	defer at.Close()
	return r.readIn(at, dir, name)
}

// readIn is read for an open directory. dir is its path, the key of the cache.
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

// current reports whether a cached file still matches its metadata.
func (f file) current(is pathresolve.Facts) bool {
	return f.is.ID.Same(is.ID) && f.is.Size == is.Size && f.is.Modified == is.Modified
}

// load reads the beginning of a regular file, unless it is one of lashd's own.
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

// protected reports whether a file is one that lashd has open. It compares identities, so
// hard links are recognized. Instructions of the user are in the same directory.
func (r *reader) protected(id pathresolve.Identity) bool {
	own, _ := os.ReadDir(r.state) // a missing directory has no files
	return slices.ContainsFunc(own, func(e fs.DirEntry) bool {
		if slices.Contains(importable, filepath.Ext(e.Name())) && e.Type().IsRegular() {
			return false
		}
		mine, err := e.Info()
		return err == nil && id.Same(pathresolve.IdentityOf(mine))
	})
}

// shelf keeps files open that must not be closed. Closing any descriptor of a database file
// would drop the database's locks, and it is unknown whether these are such files. Only a
// path that was replaced while it was opened puts a file here.
type shelf struct {
	mu    sync.Mutex
	files []*os.File
}

// keep holds f open until the process ends.
func (s *shelf) keep(f *os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = append(s.files, f)
}
