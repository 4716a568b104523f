package undo

import (
	"context"
	"errors"
	"fmt"

	"lashd/engine/filepoint"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// leftOutPath is a path that looks leave out.
type leftOutPath struct{ state *protocol.FileState }

// leftOut returns the state of a path, and copies the file, if looks leave the path out; else nil.
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

// current returns the state of a path now. A file that looks leave out is looked at here, and copied if keep is set.
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
		err = w.commit(ctx, persistence.FileCommit{Copies: copies}) // nobody tidies up as long as a workspace is locked
	}
	return &one[0].FileState, err
}

// copier keeps copies for filepoint.
type copier struct{ files *Files }

func (c copier) Known(ctx context.Context, digests []protocol.Digest) (map[protocol.Digest]bool, error) {
	return c.files.cfg.Store.Files.KnownCopies(ctx, digests)
}

func (c copier) Add(contents map[protocol.Digest][]byte) ([]persistence.FileCopy, error) {
	return c.files.shelf.Add(contents)
}

// content reads the copy of a file.
func (f *Files) content(ctx context.Context, s *protocol.FileState) ([]byte, error) {
	if s == nil || s.Kind != protocol.FileRegular {
		return nil, nil
	}
	if s.Digest == "" {
		return nil, fmt.Errorf("there is no copy: %s", s.Problem)
	}
	c, err := f.cfg.Store.Files.Copy(ctx, s.Digest)
	if err != nil {
		return nil, err
	}
	data, err := f.shelf.Read(c)
	if err != nil { // it may have been moved just now
		if c, err = f.cfg.Store.Files.Copy(ctx, s.Digest); err == nil {
			data, err = f.shelf.Read(c)
		}
	}
	return data, err
}

// diff compares two states of a file, as far as there are copies.
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
