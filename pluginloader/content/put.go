package content

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"lashd/pluginloader/manifest"
	"lashd/pluginloader/watch"
	"lashd/rpc/protocol"
)

const (
	tries   = 5
	between = 30 * time.Millisecond // two tries: longer than what was just changed has no signature for
)

// Put copies the plugin in a directory, and takes the digest of the copy. If there is that copy already, it is used. What is
// copied was in the directory at one time: if something changes meanwhile it is tried again, and in the end ErrChanging. The
// copy belongs to nobody else and cannot be written; a file in it can be executed if anybody could execute the original.
//
// Links stay what they are, and may lead nowhere but to something in the directory. What other directories have a hard link to
// is copied as any other file.
func (s *Store) Put(ctx context.Context, dir string) (Copy, error) { return s.PutFrom(ctx, "", dir) }

// PutFrom does what Put does for a plugin of a workspace, which a person has to approve.
func (s *Store) PutFrom(ctx context.Context, workspace, dir string) (Copy, error) {
	c, err := s.put(ctx, workspace, dir)
	if err != nil {
		return Copy{}, fmt.Errorf("copy plugin %s: %w", dir, err)
	}
	return c, nil
}

func (s *Store) put(ctx context.Context, workspace, dir string) (Copy, error) {
	staged, err := os.MkdirTemp(s.dir, unfinished)
	if err != nil {
		return Copy{}, err
	}
	defer func() { _ = Remove(staged) }() // after the rename there is nothing; what stays is removed at the next start
	c, err := s.stage(ctx, workspace, dir, staged)
	if err != nil {
		return Copy{}, err
	}
	return s.settle(ctx, staged, c)
}

// Examine reads the plugin in a directory as PutFrom does, so that what it tells is all of one time, and keeps no copy.
func (s *Store) Examine(ctx context.Context, workspace, dir string) (p *manifest.Plugin, b manifest.Beyond, d protocol.Digest, err error) {
	staged, err := os.MkdirTemp(s.dir, unfinished)
	if err != nil {
		return nil, b, "", err
	}
	defer func() { _ = Remove(staged) }() // what stays is removed at the next start
	c, err := s.stage(ctx, workspace, dir, staged)
	if err != nil {
		return nil, b, "", fmt.Errorf("read plugin %s: %w", dir, err)
	}
	return c.Plugin, c.Beyond, c.Digest, nil
}

// settle gives the copy that there is, or else makes one of what was staged.
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

// stage makes a copy that has its name not yet.
func (s *Store) stage(ctx context.Context, workspace, dir, staged string) (Copy, error) {
	at := filepath.Join(staged, filepath.Base(dir))
	if err := s.settled(ctx, dir, at); err != nil {
		return Copy{}, err
	}
	b, err := s.beyond(ctx, workspace, at)
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

// settled copies a directory that does not change meanwhile.
func (s *Store) settled(ctx context.Context, dir, to string) error {
	for range tries {
		before, err := watch.Signature(dir)
		if err != nil {
			return err
		}
		err = copyTree(ctx, dir, to)
		if after, _ := watch.Signature(dir); after == before || ctx.Err() != nil {
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

// beyond reads what the plugin in a copy reaches.
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

// publish gives a copy the name by which it is found, unless there is one.
func (s *Store) publish(ctx context.Context, staged string, c Copy) (Copy, error) {
	s.change.Lock()
	defer s.change.Unlock()
	there, err := s.openLocked(ctx, c.Digest)
	if err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrDamaged) {
		return there, err // somebody else was faster
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

// valid tells whether a name may be that of a copy.
func valid(d protocol.Digest) bool {
	for _, c := range d {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(d) == 64
}

// Finder has find find files for the plugins of a workspace. The names of copies are not known yet, but all are as deep.
func (s *Store) Finder(workspace string, find manifest.Finder) manifest.Finder {
	home, _ := os.UserHomeDir() // nobody runs anything in a home that is not known
	find.Workspace, find.Home = workspace, home
	find.Root = s.path("copy", "plugin")
	return find
}
