//go:build !unix

package pathresolve

import (
	"io/fs"
	"iter"
	"os"
	"syscall"
)

// handle is an open directory.
type handle struct{ root *os.Root }

// Begin opens the directory that a root is of.
func Begin(root *os.Root) (Dir, error) {
	root, err := root.OpenRoot(".")
	if err != nil {
		return Dir{}, err
	}
	return Dir{handle{root}}, nil
}

// openDir opens a directory by its path.
func openDir(at string) (Dir, error) {
	root, err := os.OpenRoot(at)
	if err != nil {
		return Dir{}, err
	}
	return Dir{handle{root}}, nil
}

// Enter opens a directory in another one. A link is none.
func (d Dir) Enter(name string) (Dir, error) {
	f, err := d.Stat(name)
	switch {
	case err != nil:
		return Dir{}, err
	case !f.Mode.IsDir():
		return Dir{}, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	}
	root, err := d.root.OpenRoot(name + "/.") // the dot insists on a directory
	if err != nil {
		return Dir{}, err
	}
	next := Dir{handle{root}}
	if now, err := next.Self(); err != nil || !f.ID.Same(now.ID) {
		next.Close()
		return Dir{}, ErrReplaced
	}
	return next, nil
}

// Close lets the directory go.
func (d Dir) Close() { d.root.Close() } // nothing is written through it

// Entries are what is in it.
func (d Dir) Entries() iter.Seq2[os.DirEntry, error] {
	return func(yield func(os.DirEntry, error) bool) {
		dir, err := d.root.Open(".")
		if err != nil {
			yield(nil, err)
			return
		}
		defer dir.Close()
		inParts(dir)(yield)
	}
}

// Stat says what a name stands for.
func (d Dir) Stat(name string) (Facts, error) {
	fi, err := d.root.Lstat(name)
	if err != nil {
		return Facts{}, err
	}
	return factsOf(fi), nil
}

// Self says what the directory itself is.
func (d Dir) Self() (Facts, error) { return d.Stat(".") }

// Link is where a link leads.
func (d Dir) Link(name string) (string, error) { return d.root.Readlink(name) }

func (d Dir) openFile(name string) (*os.File, error) {
	return d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// Identity tells a file from all others that there are at the same time.
type Identity struct{ fi os.FileInfo }

// Same tells whether two are of one file.
func (i Identity) Same(o Identity) bool { return os.SameFile(i.fi, o.fi) }

// IdentityOf is that of a file.
func IdentityOf(fi os.FileInfo) Identity { return Identity{fi} }

// factsOf takes the time that there is for the one that no program can choose.
func factsOf(fi os.FileInfo) Facts {
	at := fi.ModTime().UnixNano()
	return Facts{Mode: fi.Mode(), Size: fi.Size(), Modified: at, Changed: at, ID: Identity{fi}}
}

// FactsOf are those of an open file.
func FactsOf(f *os.File) (Facts, error) {
	fi, err := f.Stat()
	if err != nil {
		return Facts{}, err
	}
	return factsOf(fi), nil
}

func (d Dir) path(otherwise string) string { return otherwise }
