// Package filepoint looks at the files of a workspace, keeps copies of them, tells what was changed, and brings back what there
// was. It knows nothing of sessions and decides nothing; the engine does. A Workspace and a Shelf are safe for concurrent use, as far
// as different files are concerned. No path leads out of the workspace, no symbolic link is followed, and nothing of lashd's own is
// opened.
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

// Workspace is an open directory whose files are looked at.
type Workspace struct {
	root *os.Root
	own  []pathresolve.Identity // of lashd: closing one of the database's files would give up its locks
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
	w.own = append(w.own, pathresolve.IdentityOf(fi))
	entries, err := os.ReadDir(state)
	for _, e := range entries {
		if fi, err := os.Lstat(filepath.Join(state, e.Name())); err == nil {
			w.own = append(w.own, pathresolve.IdentityOf(fi))
		}
	}
	return err
}

func (w *Workspace) ours(id pathresolve.Identity) bool { return slices.ContainsFunc(w.own, id.Same) }

// directory opens the directory that a path lies in, to change something there. The caller closes it.
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

// enterRoot opens a directory in another one.
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

// place opens the directory that a path lies in, to look at it: one name after the other, and none that is a link. The caller closes it.
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

// enter opens a directory in another one, and says what it is.
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

// Look tells what stands at a path, without reading it; nil: nothing.
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

// nothing tells that an error means that nothing is there: a link on the way leads elsewhere, and not to it.
func nothing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}

// describe says what an entry is, all but its content.
func (w *Workspace) describe(at pathresolve.Dir, file string, is pathresolve.Facts) *persistence.WorkspaceFile {
	f := &persistence.WorkspaceFile{Path: file, FileState: protocol.FileState{Kind: protocol.FileRegular, Mode: pathresolve.BitsOf(is.Mode)}}
	switch {
	case w.ours(is.ID):
		f.Kind, f.Problem = protocol.FileUnknown, protocol.FileUnreadable
	case is.Mode.IsDir():
		f.Kind = protocol.FileDirectory
		return f // its times change with what is in it
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

// linkOf is where a link leads. What is no text cannot be kept.
func linkOf(at pathresolve.Dir, name string) (string, protocol.FileProblem) {
	link, err := at.Link(name)
	if err != nil || !utf8.ValidString(link) {
		return strings.ToValidUTF8(link, "\uFFFD"), protocol.FileUnreadable
	}
	return link, ""
}

// attempts is how often a file is read that changes while it is read.
const attempts = 3

// read reads a regular file, if it is the one that was looked at, as it was at one moment.
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

// errChanging means that what was read may be half of what was there before, and half of what came then.
var errChanging = errors.New("it was changed while it was read")

// tick is within which many kernels give all changes the same time.
const tick = 20 * time.Millisecond

// settled tells whether a file holds what was read of it. Its times tell that, unless it was changed in this moment.
func settled(file *os.File, now pathresolve.Facts, data []byte) bool {
	if time.Since(time.Unix(0, max(now.Modified, now.Changed))) > tick {
		return true
	}
	again := make([]byte, len(data))
	n, err := file.ReadAt(again, 0)
	return n == len(data) && (err == nil || errors.Is(err, io.EOF)) && bytes.Equal(again, data)
}

// open opens a regular file that was looked at, unless it is one of lashd's own.
func (w *Workspace) open(at pathresolve.Dir, name string, is pathresolve.Facts) (*os.File, error) {
	if w.ours(is.ID) {
		return nil, pathresolve.ErrReplaced
	}
	file, err := at.OpenRegular(name, is, w.letGo)
	if errors.Is(err, pathresolve.ErrIrregular) {
		return nil, pathresolve.ErrReplaced
	}
	return file, err
}

// letGo closes a file that was opened in place of another one, unless it is of the database: to close that would give up its locks.
func (w *Workspace) letGo(file *os.File) {
	if is, err := pathresolve.FactsOf(file); err != nil || !w.ours(is.ID) {
		file.Close()
	}
}

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
