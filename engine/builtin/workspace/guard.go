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
)

const (
	// maxOwn bounds how many of lashd's own files are known by identity before the subdirectories of the state directory
	// are left out. Each is compared with every file that a tool looks at.
	maxOwn = 2000
)

// shelf keeps files open that must not be closed: SQLite's locks belong to the process, and closing any descriptor of
// a database file gives them up. Only a path swapped during a call puts one here.
type shelf struct {
	mu    sync.Mutex
	files []*os.File
}

func (s *shelf) keep(f *os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = append(s.files, f)
}

// view is the workspace as one call sees it: the root, and the identities of what is lashd's own.
type view struct {
	root   *os.Root
	top    os.FileInfo
	real   string // path of the root, without links
	state  string
	own    []os.FileInfo
	kept   *shelf
	places []string // where the paths of the call led when it was allowed; nil: nobody looked
	gate   *deadline.Gate
}

func newView(root *os.Root, cwd, state string, kept *shelf) (*view, error) {
	top, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	v := &view{root: root, top: top, state: state, kept: kept}
	if err := v.learn(); err != nil {
		return nil, fmt.Errorf("look at the protected files: %w", err)
	}
	real, err := pathresolve.Existing(cwd)
	if err != nil {
		return nil, err
	}
	v.real = real
	for at := real; ; at = filepath.Dir(at) {
		if fi, err := os.Stat(at); err == nil && v.protected(fi) {
			return nil, errProtected
		}
		if filepath.Dir(at) == at {
			return v, nil
		}
	}
}

// learn reads the identities of the state directory, of what lies in it and, as far as maxOwn allows, of what lies one
// level further down. It opens directories only.
func (v *view) learn() error {
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
	dirs, err := v.learnDir(v.state)
	for _, d := range dirs {
		if err == nil && len(v.own) < maxOwn {
			_, err = v.learnDir(d)
		}
	}
	return err
}

// learnDir adds what lies in a directory, and returns those that are directories. One that is gone has nothing in it.
func (v *view) learnDir(name string) (dirs []string, err error) {
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

// protected tells by identity, so that a link, a mount or another spelling of the name makes no difference.
func (v *view) protected(fi os.FileInfo) bool {
	return slices.ContainsFunc(v.own, func(o os.FileInfo) bool { return os.SameFile(o, fi) })
}

// relative turns what the model wrote into a path below the workspace. It says nothing about safety: the walk does.
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

// below is a path without links as seen from the workspace. A mount gives the workspace several such paths, so ask which of the path's
// ancestors is the workspace rather than compare strings.
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

// enter opens the directory name of d, which fi describes.
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

// locate is where a path of the call leads, if it still leads there where it led when the call was allowed. The caller closes place.dir.
func (v *view) locate(name string) (place, error) {
	p, err := v.walkTo(name)
	if err != nil || v.places == nil || slices.ContainsFunc(v.places, func(at string) bool { return v.is(p, at) }) {
		return p, err
	}
	p.dir.close()
	return place{}, errElsewhere
}

// is tells whether a place is at a path without links.
func (v *view) is(p place, at string) bool {
	if at == filepath.Join(v.real, filepath.FromSlash(p.path())) {
		return true
	}
	rel, err := v.below(at) // by another mount
	return err == nil && rel == p.path()
}

// walkTo follows a path one component at a time through open handles, each compared with what was looked at before it
// was opened: what is swapped during the walk is noticed, not followed. The caller closes place.dir.
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

// follow goes on to the target of the symbolic link c.
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

// open opens the regular file at p for reading, and makes sure that it is the one that was looked at.
func (v *view) open(p place) (*os.File, error) {
	if err := regular(p.info); err != nil {
		return nil, err
	}
	f, err := pathresolve.OpenRegular(p.dir.root, p.name(), p.info, v.letGo)
	if errors.Is(err, pathresolve.ErrKernelFile) {
		return nil, errKernel
	}
	return f, moved(err)
}

// letGo closes a file that was opened in place of another one, unless it is one of lashd's own, or that is not known.
func (v *view) letGo(f *os.File) {
	fi, err := f.Stat()
	if learned := v.learn(); err != nil || learned != nil || v.protected(fi) {
		v.kept.keep(f)
		return
	}
	f.Close()
}

// moved says of what was replaced that it was.
func moved(err error) error {
	if errors.Is(err, pathresolve.ErrReplaced) {
		return errMoved
	}
	return err
}

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
