package filepoint

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"lashd/internal/glob"
	"lashd/internal/pathresolve"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

const (
	maxDepth   = 100
	maxIgnore  = 256 << 10 // bytes of a .gitignore
	ignoreName = ".gitignore"
	walkers    = 2 // directories that are walked at once; more gain nothing where names are in memory
)

// TooManyError means that a workspace has more files than are looked at.
type TooManyError struct{ Limit int }

func (e *TooManyError) Error() string {
	return fmt.Sprintf("the workspace has more than %d files that git would not ignore", e.Limit)
}

// Sight is what a look finds that is not as it is known.
type Sight struct {
	News    []persistence.WorkspaceFile // what is new or was changed, and has to be looked into; with the copies that there are until then
	Missing []string                    // paths that are known and were not found, what is in a directory before it
	Held    int64                       // bytes of which there are copies already
}

// walker goes through a workspace.
type walker struct {
	*Workspace
	index   *Index
	limit   int
	catchUp bool
	group   errgroup.Group
	found   atomic.Int64

	mu    sync.Mutex
	news  []persistence.WorkspaceFile
	rules map[string]ignoreFile
}

// Walk looks at all files of the workspace that git would not ignore, without reading them. It never goes into .git. Whoever wants to
// catch up is also told of those that there was no time or no room for.
func (w *Workspace) Walk(ctx context.Context, index *Index, limit int, catchUp bool) (Sight, error) {
	k := &walker{Workspace: w, index: index, limit: limit, catchUp: catchUp, rules: map[string]ignoreFile{}}
	root, err := pathresolve.Begin(w.root)
	if err != nil {
		return Sight{}, err
	}
	index.look++
	k.group.SetLimit(walkers - 1)
	err = k.below(ctx, root, "", nil, 0)
	if err = cmp.Or(k.group.Wait(), err); err != nil {
		return Sight{}, err
	}
	index.rules = k.rules
	missing, held := index.missing()
	return Sight{k.news, missing, held}, nil
}

// below walks a directory that is open, and closes it.
func (k *walker) below(ctx context.Context, dir pathresolve.Dir, at string, rules []ignoring, depth int) error {
	defer dir.Close()
	if own := k.ignores(dir, at); len(own) > 0 {
		rules = append(slices.Clip(rules), ignoring{at, own})
	}
	var news []persistence.WorkspaceFile
	for e, err := range dir.Entries() {
		if err = cmp.Or(err, context.Cause(ctx)); err != nil {
			return err
		}
		if leftOut(e.Name()) || ignored(rules, at+e.Name(), e.IsDir()) {
			continue
		}
		f, err := k.entry(ctx, dir, at, e, rules, depth)
		if err != nil {
			return err
		}
		if f != nil && !k.known(f) {
			news = append(news, *f)
		}
	}
	if len(news) > 0 {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.news = append(k.news, news...)
	}
	return nil
}

// entry says what an entry is, and walks it if it is a directory; nil: it is gone, or not to be looked at.
func (k *walker) entry(ctx context.Context, dir pathresolve.Dir, at string, e os.DirEntry, rules []ignoring, depth int) (*persistence.WorkspaceFile, error) {
	name := e.Name()
	if e.IsDir() && depth < maxDepth {
		sub, is, err := k.enter(dir, name)
		if err == nil {
			return k.describe(dir, at+name, is), k.down(ctx, sub, at+name+"/", rules, depth+1)
		}
	}
	is, err := dir.Stat(name)
	if err != nil || k.ours(is.ID) {
		return nil, nil
	}
	f := k.describe(dir, at+name, is)
	switch {
	case f.Kind == protocol.FileUnknown:
		return nil, nil // a socket, a device
	case f.Kind == protocol.FileDirectory && depth < maxDepth:
		f.Problem = protocol.FileUnreadable // nobody knows what is in it
	}
	return f, k.count()
}

// down counts a directory and walks it, beside the one above it if there is somebody to do it.
func (k *walker) down(ctx context.Context, sub pathresolve.Dir, at string, rules []ignoring, depth int) error {
	if err := k.count(); err != nil {
		sub.Close()
		return err
	}
	if k.group.TryGo(func() error { return k.enough(k.below(ctx, sub, at, rules, depth)) }) {
		return nil
	}
	return k.enough(k.below(ctx, sub, at, rules, depth))
}

// enough are the errors that end a walk: a directory that is gone does not.
func (k *walker) enough(err error) error {
	if nothing(err) {
		return nil
	}
	return err
}

func (k *walker) count() error {
	if k.found.Add(1) > int64(k.limit) {
		return &TooManyError{k.limit}
	}
	return nil
}

// known notes that a file was found, and tells whether it is as it is known. Only one goroutine comes to a path.
func (k *walker) known(f *persistence.WorkspaceFile) bool {
	was := k.index.files[f.Path]
	if was == nil {
		return false
	}
	was.look = k.index.look
	if k.catchUp && (was.Problem == protocol.FileLate || was.Problem == protocol.FileNoRoom) {
		return false
	}
	if f.Kind == protocol.FileRegular {
		f.Digest = was.Digest
	}
	return Same(was.WorkspaceFile, *f) && (f.Kind == protocol.FileRegular || was.Problem == f.Problem)
}

// ignores reads the .gitignore of a directory, if it is not known. One that cannot be read ignores nothing.
func (k *walker) ignores(dir pathresolve.Dir, at string) glob.Ignore {
	is, err := dir.Stat(ignoreName)
	if err != nil {
		return nil
	}
	known, ok := k.index.rules[at]
	if !ok || known.is != is || young(max(is.Modified, is.Changed)) {
		known = ignoreFile{is, k.parseIgnores(dir, is)}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rules[at] = known
	return known.rules
}

func (k *walker) parseIgnores(dir pathresolve.Dir, is pathresolve.Facts) glob.Ignore {
	f, err := k.open(dir, ignoreName, is)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxIgnore))
	if err != nil {
		return nil
	}
	return glob.ParseIgnore(string(text))
}

// young tells that a file may be changed once more without its time telling.
func young(ns int64) bool { return time.Since(time.Unix(0, ns)) < racy }
