package undo

import (
	"context"
	"errors"
	"fmt"

	"lashd/engine/filepoint"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// leftOutPath is the result of leftOut for a path that scans skip, such as one that git ignores.
// Its state is nil if nothing exists at the path.
type leftOutPath struct{ state *protocol.FileState }

// leftOut returns the current state of a path that scans skip, and stores a copy of the file. It
// returns nil for a path that the index knows: the next scan finds its changes. It locks the
// workspace and fails after lookTimeout.
func (w *workspace) leftOut(ctx context.Context, path string) (*leftOutPath, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lookTimeout, errLookTimeout)
	defer cancel()
	return withLock(ctx, w, func() (*leftOutPath, error) {
		if err := w.load(ctx); err != nil {
			return nil, err
		}
		if _, known := w.known.Get(path); known {
			return nil, nil
		}
		dir, err := w.openDir()
		if err != nil {
			return nil, err
		}
		defer dir.Close()
		state, err := w.current(ctx, dir, path, true)
		return &leftOutPath{state}, err
	})
}

// current returns the state of a path now, or nil if nothing exists there. If the file is unchanged
// since the last scan, it returns the stored state without reading the file. Otherwise it reads the
// file, and with keep set also stores a copy of it. The caller holds the lock.
func (w *workspace) current(ctx context.Context, dir *filepoint.Workspace, path string, keep bool) (*protocol.FileState, error) {
	f, err := dir.Look(path)
	if f == nil || err != nil {
		return nil, err
	}
	if was, known := w.known.Get(path); known && filepoint.Same(was, *f) {
		return &was.FileState, nil
	}
	limits := w.files.cfg.Limits
	if !keep {
		dir.Read(ctx, f, limits.FileSize)
		return &f.FileState, nil
	}
	one := []persistence.WorkspaceFile{*f}
	copies, err := dir.Capture(ctx, one, copier{w.files}, limits.FileSize, limits.Budget/2)
	if err == nil && len(copies) > 0 {
		err = w.commit(ctx, persistence.FileCommit{Copies: copies}) // Tidy cannot remove the copy before this commit: it waits until no workspace is locked
	}
	return &one[0].FileState, err
}

// copier implements filepoint.Keeper with the store and the shelf of Files.
type copier struct{ files *Files }

func (c copier) Known(ctx context.Context, digests []protocol.Digest) (map[protocol.Digest]bool, error) {
	return c.files.cfg.Store.Files.KnownCopies(ctx, digests)
}

func (c copier) Add(contents map[protocol.Digest][]byte) ([]persistence.FileCopy, error) {
	return c.files.shelf.Add(contents)
}

// content returns the bytes of a stored copy. It returns nil for anything that is not a regular
// file, and an error if no copy was made or the copy is damaged.
func (f *Files) content(ctx context.Context, s *protocol.FileState) ([]byte, error) {
	if s == nil || s.Kind != protocol.FileRegular {
		return nil, nil
	}
	if s.Digest == "" {
		return nil, fmt.Errorf("no copy of the file exists: %s", s.Problem)
	}
	c, err := f.cfg.Store.Files.Copy(ctx, s.Digest)
	if err != nil {
		return nil, err
	}
	data, err := f.shelf.Read(c)
	if err != nil { // Tidy may have moved it to another pack since the first lookup
		if c, err = f.cfg.Store.Files.Copy(ctx, s.Digest); err == nil {
			data, err = f.shelf.Read(c)
		}
	}
	return data, err
}

// diff compares two states of a file; nil means that the file does not exist. If either state is
// not a regular file with a copy, the diff is empty.
func (f *Files) diff(ctx context.Context, path string, from, to *protocol.FileState) (filepoint.Diff, error) {
	for _, s := range []*protocol.FileState{from, to} {
		if s != nil && (s.Kind != protocol.FileRegular || s.Digest == "") {
			return filepoint.Diff{}, nil
		}
	}
	before, err := f.content(ctx, from)
	after, failed := f.content(ctx, to)
	if err = errors.Join(err, failed); err != nil {
		return filepoint.Diff{}, err
	}
	return filepoint.Compare(path, before, after, from != nil, to != nil), nil
}
