// Package filepoint scans the files of a workspace, stores copies of them, and restores
// earlier states. It knows nothing about sessions and makes no decisions; package undo
// does.
//
// It never leaves the workspace: paths cannot lead out, symbolic links are not followed,
// and files of lashd itself are never opened. A Workspace and a Shelf are safe for
// concurrent use on different files.
package filepoint

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"lashd/internal/pathresolve"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Workspace is an open directory whose files are scanned and restored.
type Workspace struct {
	root *os.Root
	// own identifies the files of lashd. Closing any handle of a database file would drop
	// the database's POSIX locks, so they must never be opened.
	own []pathresolve.Identity
}

// Open opens a workspace, whose path must have no links. Files below state, the daemon's state directory, are excluded
// even if they have other names in the workspace. The caller closes it.
func Open(dir, state string) (*Workspace, error) {
	root, err := pathresolve.OpenWorkspace(dir)
	if err != nil {
		return nil, err
	}
	w := &Workspace{root: root}
	if err := w.exclude(state); err != nil {
		root.Close()
		return nil, err
	}
	return w, nil
}

// Close closes the directory. Operations in progress may fail.
func (w *Workspace) Close() error { return w.root.Close() }

// exclude stores the identities of lashd's directory and the files in it, so that hard
// links and bind mounts of them are recognized.
func (w *Workspace) exclude(state string) error {
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
	w.own = append(w.own, pathresolve.IdentityOf(fi))
	entries, err := os.ReadDir(state)
	for _, e := range entries {
		if fi, err := os.Lstat(filepath.Join(state, e.Name())); err == nil {
			w.own = append(w.own, pathresolve.IdentityOf(fi))
		}
	}
	return err
}

// ours reports whether an identity is one of lashd's own files.
func (w *Workspace) ours(id pathresolve.Identity) bool { return slices.ContainsFunc(w.own, id.Same) }

// directory opens the directory of a path for changes. It opens each part of the path by
// itself and follows no links, so a link placed there during a rewind leads nowhere. The
// caller closes it.
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
		next, err := w.enterRoot(at, name)
		at.Close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// enterRoot opens a subdirectory, unless it is a link or one of lashd's own.
func (w *Workspace) enterRoot(at *os.Root, name string) (*os.Root, error) {
	fi, err := at.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !fi.IsDir():
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	case w.ours(pathresolve.IdentityOf(fi)):
		return nil, fs.ErrPermission
	}
	return pathresolve.EnterRoot(at, name, fi)
}

// place opens the directory of a path for reading, name by name, without following links.
// The caller closes it.
func (w *Workspace) place(file string) (pathresolve.Dir, error) {
	at, err := pathresolve.Begin(w.root)
	if err != nil {
		return pathresolve.Dir{}, err
	}
	dir := path.Dir(file)
	if dir == "." {
		return at, nil
	}
	for name := range strings.SplitSeq(dir, "/") {
		next, _, err := w.enter(at, name)
		at.Close()
		if err != nil {
			return pathresolve.Dir{}, err
		}
		at = next
	}
	return at, nil
}

// enter opens a subdirectory and returns its metadata. It rejects lashd's own directory.
func (w *Workspace) enter(at pathresolve.Dir, name string) (pathresolve.Dir, pathresolve.Facts, error) {
	next, err := at.Enter(name)
	if err != nil {
		return pathresolve.Dir{}, pathresolve.Facts{}, err
	}
	f, err := next.Self()
	if err == nil && w.ours(f.ID) {
		err = fs.ErrPermission
	}
	if err != nil {
		next.Close()
		return pathresolve.Dir{}, pathresolve.Facts{}, err
	}
	return next, f, nil
}

// Look describes the file at a path without reading it. It returns nil if nothing exists
// there.
func (w *Workspace) Look(file string) (*persistence.WorkspaceFile, error) {
	at, err := w.place(file)
	if nothing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer at.Close()
	f, err := at.Stat(path.Base(file))
	if nothing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return w.describe(at, file, f), nil
}

// nothing reports whether an error means that the path does not exist. A link on the way
// counts, because links are not followed.
func nothing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}

// describe returns the metadata of an entry, without its digest.
func (w *Workspace) describe(at pathresolve.Dir, file string, is pathresolve.Facts) *persistence.WorkspaceFile {
	f := &persistence.WorkspaceFile{Path: file, FileState: protocol.FileState{Kind: protocol.FileRegular, Mode: pathresolve.BitsOf(is.Mode)}}
	switch {
	case w.ours(is.ID):
		f.Kind, f.Problem = protocol.FileUnknown, protocol.FileUnreadable
	case is.Mode.IsDir():
		f.Kind = protocol.FileDirectory
		return f // without times: they change with the directory's contents
	case is.Mode&fs.ModeSymlink != 0:
		f.Kind, f.Mode = protocol.FileLink, 0
		f.Link, f.Problem = linkOf(at, path.Base(file))
		return f
	case is.Mode.IsRegular():
		f.Size = is.Size
	default:
		f.Kind, f.Problem = protocol.FileUnknown, protocol.FileUnreadable
	}
	f.ModifiedNs, f.ChangedNs, f.Inode = is.Modified, is.Changed, is.Inode
	return f
}

// linkOf returns the target of a link. A target that is not valid UTF-8 cannot be stored.
func linkOf(at pathresolve.Dir, name string) (string, protocol.FileProblem) {
	link, err := at.Link(name)
	if err != nil || !utf8.ValidString(link) {
		return strings.ToValidUTF8(link, "\uFFFD"), protocol.FileUnreadable
	}
	return link, ""
}

// attempts is the number of times that a file is read again if it changes while it is read.
const attempts = 3

// read returns the content of a regular file as it was at one moment, and updates f to
// match it. It retries a file that changes while it is read and then returns errChanging.
func (w *Workspace) read(f *persistence.WorkspaceFile, dirs *lastDir, limit int64) ([]byte, error) {
	at, err := dirs.of(w, f.Path)
	if err != nil {
		return nil, err
	}
	for range attempts {
		data, err := w.readOnce(at, f, limit)
		if !errors.Is(err, errChanging) {
			return data, err
		}
	}
	return nil, errChanging
}

// errChanging means that the bytes read may be a mixture of two versions of the file.
var errChanging = errors.New("the file changed while it was read")

// tick is the time in which many kernels give all changes the same time stamp.
const tick = 20 * time.Millisecond

// settled reports whether the bytes read are the present content of a file. If the file
// changed within the last tick, its times cannot show that, and settled reads it a second
// time.
func settled(file *os.File, now pathresolve.Facts, data []byte) bool {
	if time.Since(time.Unix(0, max(now.Modified, now.Changed))) > tick {
		return true
	}
	again := make([]byte, len(data))
	n, err := file.ReadAt(again, 0)
	return n == len(data) && (err == nil || errors.Is(err, io.EOF)) && bytes.Equal(again, data)
}

// open opens a regular file that was described before. It returns pathresolve.ErrReplaced
// if another file is at its place now, or one of lashd's own.
func (w *Workspace) open(at pathresolve.Dir, name string, is pathresolve.Facts) (*os.File, error) {
	if w.ours(is.ID) {
		return nil, pathresolve.ErrReplaced
	}
	file, err := at.OpenRegular(name, is, w.closeUnlessOurs)
	if errors.Is(err, pathresolve.ErrIrregular) {
		return nil, pathresolve.ErrReplaced
	}
	return file, err
}

// closeUnlessOurs closes a file that was opened in place of another one. It leaks a file of
// the database, because closing it would drop the database's locks.
func (w *Workspace) closeUnlessOurs(file *os.File) {
	if is, err := pathresolve.FactsOf(file); err != nil || !w.ours(is.ID) {
		file.Close()
	}
}

// readOnce makes one attempt of read. It compares the metadata before and after, and
// returns errChanging if the file changed during the attempt.
func (w *Workspace) readOnce(at pathresolve.Dir, f *persistence.WorkspaceFile, limit int64) ([]byte, error) {
	name := path.Base(f.Path)
	is, err := at.Stat(name)
	if err != nil {
		return nil, err
	}
	file, err := w.open(at, name, is)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	was, err := pathresolve.FactsOf(file)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, err
	}
	now, err := pathresolve.FactsOf(file)
	if err != nil || now.Size != was.Size || now.Modified != was.Modified || now.Changed != was.Changed || !settled(file, now, data) {
		return nil, cmp.Or(err, errChanging)
	}
	*f = *w.describe(at, f.Path, was)
	return data, nil
}
