// Package filepoint looks at the files of a workspace, keeps copies of them, tells what was changed, and brings back what there
// was. It knows nothing of sessions and decides nothing; the engine does. A Workspace and a Shelf are safe for concurrent use, as far
// as different files are concerned. No path leads out of the workspace, no symbolic link is followed, and nothing of lashd's own is
// opened.
package filepoint

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Workspace is an open directory whose files are looked at.
type Workspace struct {
	root *os.Root
	own  []os.FileInfo // of lashd: closing one of the database's files would give up its locks
}

// Open opens a workspace. Whatever lies in state, lashd's own directory, is not looked at.
func Open(dir, state string) (*Workspace, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	w := &Workspace{root: root}
	if err := w.learn(state); err != nil {
		root.Close()
		return nil, err
	}
	return w, nil
}

// Close lets the directory go.
func (w *Workspace) Close() error { return w.root.Close() }

// learn remembers the identities of lashd's directory and of the files in it, which may have other names elsewhere.
func (w *Workspace) learn(state string) error {
	if state == "" {
		return nil
	}
	fi, err := os.Stat(state)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	w.own = append(w.own, fi)
	entries, err := os.ReadDir(state)
	for _, e := range entries {
		if fi, err := os.Lstat(filepath.Join(state, e.Name())); err == nil {
			w.own = append(w.own, fi)
		}
	}
	return err
}

func (w *Workspace) ours(fi os.FileInfo) bool {
	return slices.ContainsFunc(w.own, func(o os.FileInfo) bool { return os.SameFile(o, fi) })
}

// errSwapped means that something else stands at a path than a moment before.
var errSwapped = errors.New("it was replaced while it was looked at")

// directory opens the directory that a path lies in, one name after the other, and none that is a link. The caller closes it.
func (w *Workspace) directory(file string) (*os.Root, error) {
	at, err := w.root.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	dir := path.Dir(file)
	if dir == "." {
		return at, nil
	}
	for name := range strings.SplitSeq(dir, "/") {
		next, err := w.enter(at, name)
		at.Close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// enter opens a directory in another one.
func (w *Workspace) enter(at *os.Root, name string) (*os.Root, error) {
	fi, err := at.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !fi.IsDir():
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	case w.ours(fi):
		return nil, fs.ErrPermission
	}
	next, err := at.OpenRoot(name + "/.") // the dot insists on a directory
	if err != nil {
		return nil, err
	}
	if now, err := next.Stat("."); err != nil || !os.SameFile(fi, now) {
		next.Close()
		return nil, errSwapped
	}
	return next, nil
}

// Look tells what stands at a path, without reading it; nil: nothing.
func (w *Workspace) Look(file string) (*persistence.WorkspaceFile, error) {
	dir, err := w.directory(file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	fi, err := dir.Lstat(path.Base(file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return w.describe(dir, file, fi), nil
}

// describe says what an entry is, all but its content.
func (w *Workspace) describe(dir *os.Root, file string, fi os.FileInfo) *persistence.WorkspaceFile {
	f := &persistence.WorkspaceFile{Path: file, FileState: protocol.FileState{Kind: protocol.FileRegular, Mode: uint32(fi.Mode().Perm())}}
	switch mode := fi.Mode(); {
	case w.ours(fi):
		f.Kind, f.Problem = protocol.FileUnknown, protocol.FileUnreadable
	case mode.IsDir():
		f.Kind = protocol.FileDirectory
		return f // its times change with what is in it
	case mode&fs.ModeSymlink != 0:
		f.Kind, f.Mode = protocol.FileLink, 0
		link, err := dir.Readlink(fi.Name())
		if err != nil {
			f.Problem = protocol.FileUnreadable
		}
		f.Link = link
		return f
	case mode.IsRegular():
		f.Size = fi.Size()
	default:
		f.Kind, f.Problem = protocol.FileUnknown, protocol.FileUnreadable
	}
	f.ModifiedNs = fi.ModTime().UnixNano()
	f.ChangedNs, f.Inode = changeOf(fi)
	return f
}

// read reads a regular file, if it is the one that was looked at.
func (w *Workspace) read(f *persistence.WorkspaceFile, dirs *lastDir, limit int64) ([]byte, error) {
	dir, err := dirs.of(w, f.Path)
	if err != nil {
		return nil, err
	}
	name := path.Base(f.Path)
	fi, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() || w.ours(fi) {
		return nil, errSwapped
	}
	file, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // the name may have become a FIFO since
	if err != nil {
		return nil, err
	}
	now, err := file.Stat()
	if err != nil || !os.SameFile(fi, now) {
		if err != nil || !w.ours(now) {
			file.Close()
		} // else it stays open: to close a file of the database would give up its locks
		return nil, errSwapped
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, err
	}
	*f = *w.describe(dir, f.Path, now)
	return data, nil
}
