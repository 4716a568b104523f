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

// Begin opens the directory of a root as a Dir.
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

// Enter opens a subdirectory. It fails for a link.
func (d Dir) Enter(name string) (Dir, error) {
	f, err := d.Stat(name)
	switch {
	case err != nil:
		return Dir{}, err
	case !f.Mode.IsDir():
		return Dir{}, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	}
	root, err := d.root.OpenRoot(name + "/.") // with the dot, only a directory opens
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

// Close closes the directory.
func (d Dir) Close() { d.root.Close() } // nothing is written through it, so the error does not matter

// Entries iterates over the names in the directory, in no particular order.
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

// Stat returns the facts of a name in the directory. It does not follow a link.
func (d Dir) Stat(name string) (Facts, error) {
	fi, err := d.root.Lstat(name)
	if err != nil {
		return Facts{}, err
	}
	return factsOf(fi), nil
}

// Self returns the facts of the directory itself.
func (d Dir) Self() (Facts, error) { return d.Stat(".") }

// Link returns the target of a symbolic link.
func (d Dir) Link(name string) (string, error) { return d.root.Readlink(name) }

// openFile opens a file for reading without waiting for a pipe.
func (d Dir) openFile(name string) (*os.File, error) {
	return d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// Identity distinguishes a file from all others that exist at the same time.
type Identity struct{ fi os.FileInfo }

// Same reports whether two identities belong to the same file.
func (i Identity) Same(o Identity) bool { return os.SameFile(i.fi, o.fi) }

// IdentityOf returns the identity of a file.
func IdentityOf(fi os.FileInfo) Identity { return Identity{fi} }

// factsOf uses the modification time for Changed too, because this system reports no other.
func factsOf(fi os.FileInfo) Facts {
	at := fi.ModTime().UnixNano()
	return Facts{Mode: fi.Mode(), Size: fi.Size(), Modified: at, Changed: at, ID: Identity{fi}}
}

// FactsOf returns the facts of an open file.
func FactsOf(f *os.File) (Facts, error) {
	fi, err := f.Stat()
	if err != nil {
		return Facts{}, err
	}
	return factsOf(fi), nil
}

// path returns otherwise: this system does not report where an open directory is.
func (d Dir) path(otherwise string) string { return otherwise }
