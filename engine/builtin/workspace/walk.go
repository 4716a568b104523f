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
	walkTime    = 5 * time.Second
	walkEntries = 200_000
	walkDepth   = 100
	dirEntries  = 50_000
)

// found is an entry that a walk came by.
type found struct {
	dir  *dir
	info os.FileInfo
	path string // from the workspace
}

func (f found) place() place { return place{dir: f.dir, rest: []string{f.info.Name()}, info: f.info} }

var errEnough = errors.New("enough")

// walker goes through the tree below a directory, in order of name. It follows no symbolic link, skips .git and what is
// protected, and stops when it has used up its time or number of entries, which is no error.
type walker struct {
	view    *view
	ignored glob.Ignore
	entries int
	cut     string // why it stopped early
	// visit is called for each entry and says whether to go into it. errEnough ends the walk.
	visit func(found, bool) (descend bool, err error)
}

// walk prepares a walk below at. What .gitignore names is not visited, unless at itself is such a place.
func (v *view) walk(at place, visit func(f found, ignored bool) (bool, error)) *walker {
	w := &walker{view: v, visit: visit, ignored: v.ignores()}
	if at.path() != "." && w.ignored.Covers(at.path()) {
		w.ignored = nil
	}
	return w
}

// ignores reads the .gitignore of the workspace. One that cannot be read ignores nothing.
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
		w.cut = fmt.Sprintf("it took longer than %s", walkTime)
		return nil
	}
	return err
}

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

func (w *walker) entry(ctx context.Context, d *dir, name string, depth int) error {
	fi, err := d.root.Lstat(name)
	if err != nil || w.view.protected(fi) {
		return nil // gone meanwhile, or not for this tool's eyes
	}
	f := found{dir: d, info: fi, path: path.Join(d.path, name)}
	descend, err := w.visit(f, w.ignored.Match(f.path, fi.IsDir()))
	if err != nil || !descend || !fi.IsDir() || name == ".git" || depth == walkDepth {
		return err
	}
	sub, err := w.view.enter(d, name, fi)
	if err != nil {
		return nil // unreadable, or replaced meanwhile: the rest of the tree is still worth seeing
	}
	defer sub.close()
	err = w.below(ctx, sub, depth+1)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// names are the first entries of d, in order.
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

// note tells the model that a walk did not see everything.
func (w *walker) note() string {
	if w.cut == "" {
		return ""
	}
	return "[This is not all: " + w.cut + ". Name a smaller directory.]\n"
}

// directory locates the directory that a search starts in.
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

// under writes p as seen from the directory top.
func under(top, p string) string {
	if top == "." {
		return p
	}
	return strings.TrimPrefix(p, top+"/")
}
