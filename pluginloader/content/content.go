// Package content stores private copies of running plugins and records which plugins are trusted. The plugin loader calls it.
//
// A copy is named by its own digest. So the files that run under a digest are the files that were approved under it, even if the
// original directory changes during or after the copy. All functions are safe for concurrent use.
package content

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"lashd/internal/strictjson"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

// ErrChanging means that a directory changed during every attempt to copy it.
var ErrChanging = errors.New("its files are changing; retry when they are complete")

// ErrDamaged means that a copy no longer matches its digest. The store has removed the copy.
var ErrDamaged = errors.New("the copy differs from the approved files")

// Store keeps copies in a directory of its own. DIGEST/NAME is the copy of the plugin NAME, and
// DIGEST/.beyond.json records what that plugin uses outside its directory. An entry that starts
// with a dot is an unfinished copy, or a copy that is being removed.
//
// A copy stays on disk while it is open or Keep lists it, so the processes that run from it are
// safe.
type Store struct {
	dir  string          // absolute or relative as passed to NewStore
	find manifest.Finder // finds the programs and files that plugins name

	change sync.Mutex // held while copies are verified, published and removed, which takes as long as reading one

	mu   sync.Mutex
	used map[protocol.Digest]int // number of open Copy values per digest
}

const (
	// Names in the store's directory. None of them can be the name of a plugin or a digest.
	unfinished = ".new-"
	leaving    = ".old-"        // prefix of a copy that is being removed
	beyondFile = ".beyond.json" // plugin names cannot start with a dot
)

// Copy is an open copy of a plugin. Its files stay in place until Close. Copying the value does not
// open it again: all values share one Close.
type Copy struct {
	Digest protocol.Digest
	Root   string // directory of the copy; read-only
	Plugin *manifest.Plugin
	Beyond manifest.Beyond // what the plugin uses outside its directory

	store *Store
	once  *sync.Once
}

// Close releases the copy, so that Keep may remove it. Further calls have no effect.
func (c Copy) Close() { c.once.Do(func() { c.store.use(c.Digest, -1) }) }

// NewStore opens the store in dir, creating the directory if needed, and removes unfinished copies.
// Only one Store may use a directory at a time. find locates programs and files that plugins name
// outside their directories.
func NewStore(dir string, find manifest.Finder) (*Store, error) {
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, 0o700)); err != nil {
		return nil, fmt.Errorf("plugin copies: %w", err)
	}
	s := &Store{dir: dir, find: find, used: map[protocol.Digest]int{}}
	if err := s.each(func(name string) error { return removeIf(strings.HasPrefix(name, "."), s.path(name)) }); err != nil {
		return nil, fmt.Errorf("plugin copies: %w", err)
	}
	return s, nil
}

// path returns a path in the store's directory.
func (s *Store) path(names ...string) string {
	return filepath.Join(append([]string{s.dir}, names...)...)
}

// each calls do with the name of every entry of the store.
func (s *Store) each(do func(name string) error) error {
	entries, err := os.ReadDir(s.dir)
	for _, e := range entries {
		err = errors.Join(err, do(e.Name()))
	}
	return err
}

// removeIf removes path if yes is set.
func removeIf(yes bool, path string) error {
	if !yes {
		return nil
	}
	return Remove(path)
}

// use adds by to the number of open copies with a digest.
func (s *Store) use(d protocol.Digest, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used[d] += by; s.used[d] == 0 {
		delete(s.used, d)
	}
}

// inUse reports whether a copy with the digest is open.
func (s *Store) inUse(d protocol.Digest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used[d] > 0
}

// Open verifies and opens the copy with a digest. The error is ErrDamaged if the copy does not
// match, which also removes it, and fs.ErrNotExist if there is none. The caller closes the copy.
func (s *Store) Open(ctx context.Context, d protocol.Digest) (Copy, error) {
	if !valid(d) {
		return Copy{}, fmt.Errorf("plugin copy %q: %w", d, fs.ErrNotExist)
	}
	s.change.Lock()
	defer s.change.Unlock()
	c, err := s.openLocked(ctx, d)
	if err != nil {
		return Copy{}, fmt.Errorf("plugin copy %s: %w", d, err)
	}
	return c, nil
}

// openLocked is Open for callers that hold change.
func (s *Store) openLocked(ctx context.Context, d protocol.Digest) (Copy, error) {
	c, err := s.verify(ctx, d)
	switch {
	case err == nil:
		s.use(d, 1)
	case errors.Is(err, ErrDamaged):
		err = errors.Join(err, s.dropLocked(d))
	}
	return c, err
}

// verify reads the copy and computes its digest. The error is ErrDamaged unless the copy is
// missing, ctx has ended, or the system lacked resources to read it. So a shortage of memory does
// not delete good copies.
func (s *Store) verify(ctx context.Context, d protocol.Digest) (Copy, error) {
	if _, err := os.Lstat(s.path(string(d))); err != nil {
		return Copy{}, err
	}
	c, err := s.read(ctx, s.path(string(d)))
	if err == nil && c.Digest != d {
		err = fmt.Errorf("its digest is %s", c.Digest)
	}
	if err != nil && ctx.Err() == nil && !starved(err) {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return c, err
}

// read loads the copy in a directory and computes its digest.
func (s *Store) read(ctx context.Context, dir string) (c Copy, err error) {
	data, err := os.ReadFile(filepath.Join(dir, beyondFile))
	if err != nil {
		return c, err
	}
	if err := strictjson.Decode(data, &c.Beyond); err != nil {
		return c, err
	}
	c.Root, c.store, c.once = filepath.Join(dir, c.Beyond.Name), s, new(sync.Once)
	root, err := os.OpenRoot(c.Root)
	if err != nil {
		return c, err
	}
	defer root.Close()
	if c.Plugin, err = manifest.Load(root); err != nil {
		return c, err
	}
	c.Digest, err = manifest.Digest(ctx, root, c.Beyond)
	return c, err
}

// dropLocked removes a copy. It renames the copy first, so that a crash in between leaves an entry
// that the next NewStore removes, and never a partial copy under a digest.
func (s *Store) dropLocked(d protocol.Digest) error {
	old, err := os.MkdirTemp(s.dir, leaving)
	if err != nil {
		return err
	}
	return errors.Join(os.Rename(s.path(string(d)), filepath.Join(old, string(d))), Remove(old))
}

// Keep removes all copies that are closed and not in the result of kept. It calls kept after it has
// listed the closed copies. So a copy that is added to the kept set before it is closed is never
// removed. The loader calls Keep after plugins have changed or ended.
func (s *Store) Keep(kept func() map[protocol.Digest]bool) error {
	s.change.Lock()
	defer s.change.Unlock()
	var closed []protocol.Digest
	err := s.each(func(name string) error {
		if d := protocol.Digest(name); valid(d) && !s.inUse(d) {
			closed = append(closed, d)
		}
		return nil
	})
	digests := kept()
	for _, d := range closed {
		if !digests[d] {
			err = errors.Join(err, s.dropLocked(d))
		}
	}
	if err != nil {
		return fmt.Errorf("plugin copies: %w", err)
	}
	return nil
}

// record writes what a plugin uses outside its directory next to its copy. The digest covers it, so
// it must be stored with the copy to verify it later.
func record(dir string, b manifest.Beyond) error {
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, beyondFile), data, 0o400)
}
