//go:build !unix

package filepoint

import (
	"io/fs"
	"iter"
	"os"
	"syscall"
)

// place is a directory that a walk is in.
type place struct{ root *os.Root }

// begin is the place that a walk begins in.
func (w *Workspace) begin() (place, error) {
	root, err := w.root.OpenRoot(".")
	return place{root}, err
}

// enter opens a directory in another one. A link is none.
func (p place) enter(name string) (place, error) {
	f, err := p.stat(name)
	switch {
	case err != nil:
		return place{}, err
	case !f.mode.IsDir():
		return place{}, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	}
	root, err := p.root.OpenRoot(name + "/.") // the dot insists on a directory
	if err != nil {
		return place{}, err
	}
	next := place{root}
	if now, err := next.self(); err != nil || !f.id.same(now.id) {
		next.close()
		return place{}, errSwapped
	}
	return next, nil
}

func (p place) close() { p.root.Close() } // nothing is written through it

// entries are what is in it.
func (p place) entries() iter.Seq2[os.DirEntry, error] {
	return func(yield func(os.DirEntry, error) bool) {
		dir, err := p.root.Open(".")
		if err != nil {
			yield(nil, err)
			return
		}
		defer dir.Close()
		inParts(dir)(yield)
	}
}

// stat says what a name stands for, and self what the place is.
func (p place) stat(name string) (facts, error) {
	fi, err := p.root.Lstat(name)
	if err != nil {
		return facts{}, err
	}
	return factsOf(fi), nil
}

func (p place) self() (facts, error) { return p.stat(".") }

func (p place) link(name string) (string, error) { return p.root.Readlink(name) }

// readFile opens a file to be read.
func (p place) readFile(name string) (*os.File, error) { return p.root.Open(name) }

// identity tells a file from all others that there are at the same time.
type identity struct{ fi os.FileInfo }

func (i identity) same(o identity) bool { return os.SameFile(i.fi, o.fi) }

func identityOf(fi os.FileInfo) identity { return identity{fi} }

// factsOf takes the time that there is for the one that no program can choose.
func factsOf(fi os.FileInfo) facts {
	at := fi.ModTime().UnixNano()
	return facts{mode: fi.Mode(), size: fi.Size(), modified: at, changed: at, id: identity{fi}}
}

func factsOfFile(f *os.File) (facts, error) {
	fi, err := f.Stat()
	if err != nil {
		return facts{}, err
	}
	return factsOf(fi), nil
}
