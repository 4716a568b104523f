package content

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"lashd/pluginloader/layout"
	"lashd/pluginloader/manifest"
	"lashd/pluginloader/watch"
	"lashd/rpc/protocol"
)

// Attempts to copy a directory that changes.
const (
	tries   = 5
	between = 30 * time.Millisecond // pause between attempts; longer than a stamp stays hot (watch.Stamp.Hot)
)

// Put copies the plugin in dir, or opens the copy that the store already has. The copy is
// consistent: if the directory changes during the copy, Put copies it again, and returns
// ErrChanging after several attempts. The files of the copy are read-only. A file is executable if
// anyone could execute the original.
//
// Links are copied as links and must lead to something inside the directory. Hard links are copied
// as separate files. The caller closes the copy.
func (s *Store) Put(ctx context.Context, dir string) (Copy, error) {
	return s.PutFrom(ctx, Source{Dir: dir})
}

// Source is where a plugin comes from.
type Source struct {
	Workspace string // of a plugin that needs approval; empty: a plugin of the user
	Dir       string
	Only      layout.Selection // the part of the directory that belongs to the plugin; nil: all
	Name      string           // name of the copy's directory until the plugin is read; empty: that of Dir
}

// PutFrom is Put for any source. The digest of a plugin of a workspace also covers files outside the plugin that its commands name.
func (s *Store) PutFrom(ctx context.Context, from Source) (Copy, error) {
	c, err := s.put(ctx, from)
	if err != nil {
		return Copy{}, fmt.Errorf("copy plugin %s: %w", from.Dir, err)
	}
	return c, nil
}

// put stages a copy, and publishes it unless the store has one with the same digest.
func (s *Store) put(ctx context.Context, from Source) (Copy, error) {
	staged, err := os.MkdirTemp(s.dir, unfinished)
	if err != nil {
		return Copy{}, err
	}
	defer func() { _ = Remove(staged) }() // after publish, nothing is left; NewStore removes the rest if this fails
	c, err := s.stage(ctx, from, staged)
	if err != nil {
		return Copy{}, err
	}
	return s.settle(ctx, staged, c)
}

// Examine passes a plugin to read, like the copy that PutFrom would make, so everything in it belongs to one consistent state. The copy
// is removed when read returns.
func (s *Store) Examine(ctx context.Context, from Source, read func(Copy) error) error {
	staged, err := os.MkdirTemp(s.dir, unfinished)
	if err != nil {
		return err
	}
	defer func() { _ = Remove(staged) }() // if this fails, NewStore removes it
	c, err := s.stage(ctx, from, staged)
	if err == nil {
		err = read(c)
	}
	if err != nil {
		return fmt.Errorf("read plugin %s: %w", from.Dir, err)
	}
	return nil
}

// settle opens the existing copy with the digest of the staged one, or publishes the staged one.
// The files are synced before the lock is taken, because that is slow and other plugins should not
// wait for it.
func (s *Store) settle(ctx context.Context, staged string, c Copy) (Copy, error) {
	there, err := s.Open(ctx, c.Digest)
	if err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrDamaged) {
		return there, err
	}
	if err := flush(staged); err != nil {
		return Copy{}, err
	}
	return s.publish(ctx, staged, c)
}

// stage makes an unpublished copy in the directory staged: copy the files, find out what the plugin
// uses outside them, record that, and compute the digest of the copy. The digest is that of the
// copied bytes, not of the original, which may have changed by now.
func (s *Store) stage(ctx context.Context, from Source, staged string) (Copy, error) {
	at := filepath.Join(staged, cmp.Or(from.Name, filepath.Base(from.Dir)))
	if err := s.settled(ctx, from, at); err != nil {
		return Copy{}, err
	}
	b, err := s.beyond(ctx, from.Workspace, at)
	if err != nil {
		return Copy{}, err
	}
	if named := filepath.Join(staged, b.Name); at != named {
		if err := os.Rename(at, named); err != nil {
			return Copy{}, err
		}
	}
	if err := record(staged, b); err != nil {
		return Copy{}, err
	}
	return s.read(ctx, staged)
}

// settled copies a directory until it has not changed during the copy. It compares signatures
// before and after, and gives up after several attempts with ErrChanging.
func (s *Store) settled(ctx context.Context, from Source, to string) error {
	for range tries {
		before, err := watch.Signature(from.Dir, from.Only)
		if err != nil {
			return err
		}
		err = copyTree(ctx, from.Dir, to, from.Only)
		if after, _ := watch.Signature(from.Dir, from.Only); after == before || ctx.Err() != nil {
			return err
		}
		if err := Remove(to); err != nil {
			return err
		}
		select {
		case <-time.After(between):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return ErrChanging
}

// beyond returns what the plugin in a staged copy uses outside its directory.
func (s *Store) beyond(ctx context.Context, workspace, dir string) (manifest.Beyond, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return manifest.Beyond{}, err
	}
	defer root.Close()
	p, err := manifest.Load(root)
	if err != nil {
		return manifest.Beyond{}, err
	}
	return p.Beyond(ctx, s.Finder(workspace, s.find))
}

// publish renames a staged copy to its digest, or opens the copy that another goroutine published
// first.
func (s *Store) publish(ctx context.Context, staged string, c Copy) (Copy, error) {
	s.change.Lock()
	defer s.change.Unlock()
	there, err := s.openLocked(ctx, c.Digest)
	if err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrDamaged) {
		return there, err // another goroutine published it first
	}
	if err := os.Rename(staged, s.path(string(c.Digest))); err != nil {
		return Copy{}, err
	}
	if err := persist(s.dir); err != nil {
		return Copy{}, errors.Join(err, s.dropLocked(c.Digest))
	}
	c.Root = s.path(string(c.Digest), c.Beyond.Name)
	s.use(c.Digest, 1)
	return c, nil
}

// valid reports whether d has the form of a digest, and so may name a copy. Other entries of the
// store's directory are never treated as copies.
func valid(d protocol.Digest) bool {
	for _, c := range d {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(d) == 64
}

// Finder completes find for the plugins of a workspace. The path of the copy is not known yet, so
// Root is a path of the same depth, which is enough to resolve relative paths.
func (s *Store) Finder(workspace string, find manifest.Finder) manifest.Finder {
	home, _ := os.UserHomeDir() // without a home, no command can name files in it
	find.Workspace, find.Home = workspace, home
	find.Root = s.path("copy", "plugin")
	return find
}
