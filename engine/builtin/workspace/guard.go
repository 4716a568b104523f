package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"lashd/internal/deadline"
	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

const (
	// maxOwn limits the number of lashd's own files whose identity is read. Beyond it, the subdirectories of the state directory
	// are skipped. Every file that a tool uses is compared with each of them.
	maxOwn = 2000
)

// shelf keeps files open that must not be closed. SQLite's locks belong to the process, and
// closing any descriptor of a database file drops them. Only a path that is replaced during
// a call puts a file here.
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

// view is the workspace during one call. It is the guard of all file tools: every path goes
// through locate or walk.
//
// It holds the root and the identities of lashd's own files, which are read for each call
// because the daemon may create files at any time. Paths are resolved through open
// directory handles, so that a component cannot be replaced between its check and its use.
type view struct {
	// root is the open workspace, top its identity.
	root *os.Root
	top  os.FileInfo
	// real is the path of the root without symbolic links.
	real  string
	state string
	// own identifies lashd's files. See protected.
	own []os.FileInfo
	// kept holds files that must stay open.
	kept *shelf
	// places are the places to which the paths of the call led when it was approved. Nil:
	// they were not checked.
	places []string
	// shown has the hash of each file that a person saw a change of. See tool.Invocation.
	shown map[string]protocol.Digest
	// gate decides whether a change may still start, see inTime.
	gate *deadline.Gate
}

// newView reads the identities of lashd's own files. cwd is the path of the workspace, without links. It fails if the workspace is inside
// the state directory.
func newView(root *os.Root, cwd, state string, kept *shelf) (*view, error) {
	top, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	v := &view{root: root, top: top, state: state, kept: kept}
	if err := v.loadOwn(); err != nil {
		return nil, fmt.Errorf("read the state directory: %w", err)
	}
	v.real = filepath.Clean(cwd)
	for at := v.real; ; at = filepath.Dir(at) {
		if fi, err := os.Stat(at); err == nil && v.protected(fi) {
			return nil, errProtected
		}
		if filepath.Dir(at) == at {
			return v, nil
		}
	}
}

// loadOwn reads the identities of the state directory, of its entries and, up to maxOwn, of
// the entries one level below. It opens only directories.
func (v *view) loadOwn() error {
	v.own = nil
	if v.state == "" {
		return nil
	}
	fi, err := os.Stat(v.state)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	v.own = append(v.own, fi)
	dirs, err := v.loadOwnDir(v.state)
	for _, d := range dirs {
		if err == nil && len(v.own) < maxOwn {
			_, err = v.loadOwnDir(d)
		}
	}
	return err
}

// loadOwnDir adds the entries of a directory and returns its subdirectories. A missing
// directory is empty.
func (v *view) loadOwnDir(name string) (dirs []string, err error) {
	entries, err := os.ReadDir(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		fi, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		v.own = append(v.own, fi)
		if fi.IsDir() {
			dirs = append(dirs, filepath.Join(name, e.Name()))
		}
	}
	return dirs, nil
}

// protected reports whether a file is one of lashd's own. It compares identities, so links,
// mounts and other spellings are recognized.
func (v *view) protected(fi os.FileInfo) bool {
	return slices.ContainsFunc(v.own, func(o os.FileInfo) bool { return os.SameFile(o, fi) })
}

// relative converts a path from the model to one below the workspace. It does not check
// safety; walkTo does.
func (v *view) relative(name string) (string, error) {
	if strings.ContainsRune(name, 0) {
		return "", errBadPath
	}
	name = cmp.Or(name, ".")
	if !filepath.IsAbs(name) {
		if filepath.VolumeName(name) != "" || os.IsPathSeparator(name[0]) {
			return "", errOutside
		}
		return filepath.ToSlash(name), nil
	}
	real, err := pathresolve.Real(name)
	if errors.Is(err, pathresolve.ErrLoop) {
		return "", errLoop
	}
	if err != nil {
		return "", err
	}
	return v.below(real)
}

// below returns a path without links relative to the workspace. A mount can give the
// workspace several paths, so it compares the identities of the path's ancestors instead of
// strings.
func (v *view) below(real string) (string, error) {
	rest := ""
	for at := real; ; {
		if fi, err := os.Stat(at); err == nil && os.SameFile(fi, v.top) {
			return cmp.Or(rest, "."), nil
		}
		up := filepath.Dir(at)
		if up == at {
			return "", errOutside
		}
		rest = path.Join(filepath.Base(at), rest)
		at = up
	}
}

// enter opens the subdirectory name of d, which fi describes. It returns errMoved if
// the path now has another directory.
func (v *view) enter(d *dir, name string, fi os.FileInfo) (*dir, error) {
	if v.protected(fi) {
		return nil, errProtected
	}
	root, err := pathresolve.EnterRoot(d.root, name, fi)
	if err != nil {
		return nil, moved(err)
	}
	return &dir{root: root, path: path.Join(d.path, name)}, nil
}

// locate returns the place to which a path of the call leads. It returns errElsewhere if
// the path led to another place when the call was approved. The caller closes place.dir.
func (v *view) locate(name string) (place, error) {
	p, err := v.walkTo(name)
	if err != nil || v.places == nil || slices.ContainsFunc(v.places, func(at string) bool { return v.is(p, at) }) {
		return p, err
	}
	p.dir.close()
	return place{}, errElsewhere
}

// is reports whether a place is at a path without links.
func (v *view) is(p place, at string) bool {
	if at == filepath.Join(v.real, filepath.FromSlash(p.path())) {
		return true
	}
	rel, err := v.below(at) // the same place through another mount
	return err == nil && rel == p.path()
}

// walkTo follows a path one component at a time through open handles, and resolves symbolic
// links itself.
//
// Each component is checked before it is opened and compared with what was opened, so a
// component that is replaced during the walk is an error instead of a way out. Links may
// lead anywhere inside the workspace; a target outside is errOutside, and one of lashd's
// own files is errProtected. Trailing components may be missing, see place. The caller
// closes place.dir.
func (v *view) walkTo(name string) (p place, err error) {
	rel, err := v.relative(name)
	if err != nil {
		return place{}, err
	}
	walk := trail{{root: v.root, path: "."}}
	defer func() {
		if err != nil {
			walk.drop()
		}
	}()
	way := pathresolve.NewWay(components(rel))
	for c, ok := way.Next(); ok; c, ok = way.Next() {
		if c == ".." {
			if len(walk) == 1 {
				return place{}, errOutside
			}
			walk.pop()
			continue
		}
		fi, err := walk.last().root.Lstat(c)
		switch {
		case errors.Is(err, fs.ErrNotExist) && !slices.Contains(way.Left(), ".."):
			return place{dir: walk.leave(), rest: append([]string{c}, way.Left()...)}, nil
		case err != nil:
			return place{}, err
		case v.protected(fi):
			return place{}, errProtected
		case fi.Mode()&fs.ModeSymlink != 0:
			if err := v.follow(&walk, c, way); err != nil {
				return place{}, err
			}
		case fi.IsDir():
			next, err := v.enter(walk.last(), c, fi)
			if err != nil {
				return place{}, err
			}
			walk = append(walk, next)
			if len(way.Left()) == 0 {
				return place{dir: walk.leave(), info: fi}, nil
			}
		case len(way.Left()) > 0:
			return place{}, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
		default:
			return place{dir: walk.leave(), rest: []string{c}, info: fi}, nil
		}
	}
	fi, err := walk.last().root.Stat(".")
	if err != nil {
		return place{}, err
	}
	return place{dir: walk.leave(), info: fi}, nil
}

// follow continues the walk at the target of the symbolic link c.
func (v *view) follow(walk *trail, c string, way *pathresolve.Way) error {
	target, err := walk.last().root.Readlink(c)
	if err != nil {
		return err
	}
	if filepath.IsAbs(target) {
		walk.rewind()
	}
	rel, err := v.relative(target)
	if err != nil {
		return err
	}
	if way.Link(components(rel)) != nil {
		return errLoop
	}
	return nil
}

// open opens the regular file at p for reading. It returns errMoved if another file is
// there now.
func (v *view) open(p place) (*os.File, error) {
	if err := regular(p.info); err != nil {
		return nil, err
	}
	f, err := pathresolve.OpenRegular(p.dir.root, p.name(), p.info, v.closeUnlessOwn)
	if errors.Is(err, pathresolve.ErrKernelFile) {
		return nil, errKernel
	}
	return f, moved(err)
}

// closeUnlessOwn closes a file that was opened in place of another one. It keeps the file
// open if it is, or may be, one of lashd's own.
func (v *view) closeUnlessOwn(f *os.File) {
	fi, err := f.Stat()
	if loaded := v.loadOwn(); err != nil || loaded != nil || v.protected(fi) {
		v.kept.keep(f)
		return
	}
	f.Close()
}

// moved converts pathresolve.ErrReplaced to errMoved.
func moved(err error) error {
	if errors.Is(err, pathresolve.ErrReplaced) {
		return errMoved
	}
	return err
}

// regular returns an error unless fi describes a regular file. Pipes and devices could
// block a read or have side effects.
func regular(fi os.FileInfo) error {
	switch {
	case fi == nil:
		return fs.ErrNotExist
	case fi.IsDir():
		return errDirectory
	case !fi.Mode().IsRegular():
		return errIrregular
	}
	return nil
}
