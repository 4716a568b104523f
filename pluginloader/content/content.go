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

// ErrChanging says that a directory was changed while it was copied, each time it was tried.
var ErrChanging = errors.New("its files are changing; retry when they are complete")

// ErrDamaged says that a copy is not what its digest stands for. It is removed.
var ErrDamaged = errors.New("the copy differs from the approved files")

// Store keeps copies in a directory of its own. In it, DIGEST/NAME is the copy of the plugin NAME, DIGEST/.beyond.json is
// what it reaches beyond its directory, and an entry that begins with a dot was not finished, or is about to go.
type Store struct {
	dir  string
	find manifest.Finder

	change sync.Mutex // held while copies are checked, come to their place, and go, which takes as long as to read one

	mu   sync.Mutex
	used map[protocol.Digest]int // copies that are not closed
}

const (
	unfinished = ".new-"
	leaving    = ".old-"
	beyondFile = ".beyond.json" // no plugin has such a name
)

// Copy is a plugin as it may be run. It stays where it is until it is closed.
type Copy struct {
	Digest protocol.Digest
	Root   string // its directory: nothing there may be written
	Plugin *manifest.Plugin
	Beyond manifest.Beyond

	store *Store
	once  *sync.Once
}

// Close lets Keep remove the copy. It may be called more than once.
func (c Copy) Close() { c.once.Do(func() { c.store.use(c.Digest, -1) }) }

// NewStore makes the store in a directory, which is made if it is not there. What an earlier one left unfinished is removed:
// only one may use a directory at a time. Find finds what plugins name
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

func (s *Store) path(names ...string) string {
	return filepath.Join(append([]string{s.dir}, names...)...)
}

func (s *Store) each(do func(name string) error) error {
	entries, err := os.ReadDir(s.dir)
	for _, e := range entries {
		err = errors.Join(err, do(e.Name()))
	}
	return err
}

func removeIf(yes bool, path string) error {
	if !yes {
		return nil
	}
	return Remove(path)
}

func (s *Store) use(d protocol.Digest, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used[d] += by; s.used[d] == 0 {
		delete(s.used, d)
	}
}

func (s *Store) inUse(d protocol.Digest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used[d] > 0
}

// Open gives the copy with a digest, if it still is what that stands for. One that is not is ErrDamaged, and gone. One that
// is not there is fs.ErrNotExist.
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

// verify reads a copy. If it can be read and is not what its digest stands for, it is damaged.
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

// read reads the copy in a directory, and takes its digest.
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

// dropLocked removes a copy. It is renamed first, so that no part of it ever has its name.
func (s *Store) dropLocked(d protocol.Digest) error {
	old, err := os.MkdirTemp(s.dir, leaving)
	if err != nil {
		return err
	}
	return errors.Join(os.Rename(s.path(string(d)), filepath.Join(old, string(d))), Remove(old))
}

// Keep removes all copies but those whose digests are kept, and those that are not closed. What is kept it asks once it knows
// which are closed, so that who closes a copy after it is to be kept does not lose it.
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

// record writes what a plugin reaches beside its copy.
func record(dir string, b manifest.Beyond) error {
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, beyondFile), data, 0o400)
}
