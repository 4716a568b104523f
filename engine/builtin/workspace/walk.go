package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"lashd/internal/glob"
)

const (
	// Limits of a walk: its time, and the numbers of entries, of nested directories, and of
	// entries in one directory.
	walkTime    = 5 * time.Second
	walkEntries = 200_000
	walkDepth   = 100
	dirEntries  = 50_000
)

// found is an entry of a walk.
type found struct {
	dir  *dir
	info os.FileInfo
	// path is relative to the workspace.
	path string
}

// place returns the entry as a place. It is valid during the visit, while dir is open.
func (f found) place() place { return place{dir: f.dir, rest: []string{f.info.Name()}, info: f.info} }

// errEnough ends a walk early without an error.
var errEnough = errors.New("enough")

// walker visits the tree below a directory in order of names. It follows no symbolic links
// and skips .git and protected files. It stops without an error when its time or number of
// entries is used up.
type walker struct {
	view *view
	// ignored has the rules of the workspace's .gitignore.
	ignored glob.Ignore
	// entries is the number of entries so far.
	entries int
	// cut is the reason why the walk stopped early, or "".
	cut string
	// visit is called for each entry and reports whether to enter it. errEnough ends the walk.
	visit func(found, bool) (descend bool, err error)
}

// walk prepares a walk below at. visit learns whether git ignores an entry. If git ignores
// at itself, nothing below counts as ignored.
func (v *view) walk(at place, visit func(f found, ignored bool) (bool, error)) *walker {
	w := &walker{view: v, visit: visit, ignored: v.ignores()}
	if at.path() != "." && w.ignored.Covers(at.path()) {
		w.ignored = nil
	}
	return w
}

// ignores returns the rules of the workspace's .gitignore. An unreadable file ignores
// nothing.
func (v *view) ignores() glob.Ignore {
	at, err := v.walkTo(".gitignore")
	if err != nil {
		return nil
	}
	defer at.dir.close()
	f, err := v.open(at)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return nil
	}
	return glob.ParseIgnore(string(text))
}

// run walks the tree below d within walkTime. Reaching a limit is not an error: cut says
// so, and note tells the model. The cancellation of ctx is an error.
func (w *walker) run(ctx context.Context, d *dir) error {
	limited, cancel := context.WithTimeout(ctx, walkTime)
	defer cancel()
	err := w.below(limited, d, 0)
	switch {
	case errors.Is(err, errEnough):
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		w.cut = fmt.Sprintf("the search took longer than %s", walkTime)
		return nil
	}
	return err
}

// below visits the entries of an open directory.
func (w *walker) below(ctx context.Context, d *dir, depth int) error {
	names, err := d.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if w.entries++; w.entries > walkEntries {
			w.cut = fmt.Sprintf("there are more than %d files", walkEntries)
			return errEnough
		}
		if err := w.entry(ctx, d, name, depth); err != nil {
			return err
		}
	}
	return nil
}

// entry visits one entry and, if visit asks for it, the directory below it.
func (w *walker) entry(ctx context.Context, d *dir, name string, depth int) error {
	fi, err := d.root.Lstat(name)
	if err != nil || w.view.protected(fi) {
		return nil // deleted during the walk, or protected
	}
	f := found{dir: d, info: fi, path: path.Join(d.path, name)}
	descend, err := w.visit(f, w.ignored.Match(f.path, fi.IsDir()))
	if err != nil || !descend || !fi.IsDir() || name == ".git" || depth == walkDepth {
		return err
	}
	sub, err := w.view.enter(d, name, fi)
	if err != nil {
		return nil // skip an unreadable or replaced directory and continue with the rest
	}
	defer sub.close()
	err = w.below(ctx, sub, depth+1)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// names returns the sorted names in d, at most dirEntries of them.
func (d *dir) names() ([]string, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(dirEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

// note returns a line for the model if the walk was incomplete, or "".
func (w *walker) note() string {
	if w.cut == "" {
		return ""
	}
	return "[Incomplete: " + w.cut + ". Try a smaller directory.]\n"
}

// directory locates the directory in which a search starts.
func (v *view) directory(name string) (place, error) {
	at, err := v.locate(cmp.Or(name, "."))
	if err != nil {
		return place{}, err
	}
	if at.info == nil {
		err = fs.ErrNotExist
	} else if !at.info.IsDir() {
		err = refuse("not_directory", "this is not a directory")
	}
	if err != nil {
		at.dir.close()
		return place{}, err
	}
	return at, nil
}

// under returns p relative to the directory top.
func under(top, p string) string {
	if top == "." {
		return p
	}
	return strings.TrimPrefix(p, top+"/")
}
