package filepoint

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"lashd/internal/glob"
	"lashd/internal/pathresolve"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Limits of a scan.
const (
	// maxDepth is the number of nested directories that are scanned.
	maxDepth = 100
	// maxIgnore is the number of bytes that are read of a .gitignore.
	maxIgnore  = 256 << 10
	ignoreName = ".gitignore"
	// walkers is the number of directories that are scanned at once. More gain nothing
	// while names are in the system's cache.
	walkers = 2
)

// TooManyError means that a workspace has more than Limit files, not counting ignored ones.
type TooManyError struct{ Limit int }

func (e *TooManyError) Error() string {
	return fmt.Sprintf("the workspace has more than %d files that git does not ignore", e.Limit)
}

// Sight is the difference between a scan and the index.
type Sight struct {
	// News are new and changed files, whose content must be read. Changed files still have
	// their old digest.
	News []persistence.WorkspaceFile
	// Missing are known paths that the scan did not find, contents before their directory.
	Missing []string
	// Held is the number of bytes that already have copies.
	Held int64
}

// walker is one scan. Its goroutines share found, news and rules, and each path of the
// index belongs to the goroutine that finds it.
type walker struct {
	*Workspace
	index   *Index
	limit   int
	catchUp bool
	group   errgroup.Group
	found   atomic.Int64

	mu    sync.Mutex
	news  []persistence.WorkspaceFile
	rules ignoreRules
}

// Walk finds all files of the workspace that git does not ignore and compares them with the
// index, without reading their contents. It never enters .git. With catchUp it also reports
// files that earlier scans could not copy for lack of time or room. It returns a
// TooManyError after limit files, and the cause of ctx when ctx ends. The caller must not
// use the index during the call.
func (w *Workspace) Walk(ctx context.Context, index *Index, limit int, catchUp bool) (Sight, error) {
	k := &walker{Workspace: w, index: index, limit: limit, catchUp: catchUp, rules: ignoreRules{}}
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

// below scans an open directory and closes it. at is its path with a slash at the end,
// rules are the ignore rules of the directories above. It collects changed entries locally
// and adds them under the lock once, because directories are scanned in parallel.
func (k *walker) below(ctx context.Context, dir pathresolve.Dir, at string, rules glob.Ignores, depth int) error {
	defer dir.Close()
	rules = rules.With(at, k.ignores(dir, at))
	var news []persistence.WorkspaceFile
	for e, err := range dir.Entries() {
		if err = cmp.Or(err, context.Cause(ctx)); err != nil {
			return err
		}
		if leftOut(e.Name()) || rules.Match(at+e.Name(), e.IsDir()) {
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

// entry describes an entry of a directory, and scans it if it is a directory itself. It
// returns nil for entries that are skipped or gone.
func (k *walker) entry(ctx context.Context, dir pathresolve.Dir, at string, e os.DirEntry, rules glob.Ignores, depth int) (*persistence.WorkspaceFile, error) {
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
		return nil, nil // a socket or a device
	case f.Kind == protocol.FileDirectory && depth < maxDepth:
		f.Problem = protocol.FileUnreadable // its contents are unknown
	}
	return f, k.count()
}

// down scans a subdirectory, in a goroutine of its own if one is free. It closes sub.
func (k *walker) down(ctx context.Context, sub pathresolve.Dir, at string, rules glob.Ignores, depth int) error {
	if err := k.count(); err != nil {
		sub.Close()
		return err
	}
	if k.group.TryGo(func() error { return k.enough(k.below(ctx, sub, at, rules, depth)) }) {
		return nil
	}
	return k.enough(k.below(ctx, sub, at, rules, depth))
}

// enough returns the errors that end a scan. A directory that disappeared does not.
func (k *walker) enough(err error) error {
	if nothing(err) {
		return nil
	}
	return err
}

// count adds one file to the total and returns a TooManyError beyond the limit.
func (k *walker) count() error {
	if k.found.Add(1) > int64(k.limit) {
		return &TooManyError{k.limit}
	}
	return nil
}

// known marks a file as found, and reports whether it is unchanged. If not, it gives f the
// old digest. Only one goroutine calls it for a path.
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

// ignores returns the rules of a directory's .gitignore. It reads the file only if its
// metadata changed since the last scan, or if it is too young to tell. An unreadable file
// ignores nothing.
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

// parseIgnores reads the .gitignore described by is.
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

// young reports whether a time stamp is so recent that another change could have the same
// one.
func young(ns int64) bool { return time.Since(time.Unix(0, ns)) < racy }
