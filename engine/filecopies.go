package engine

import (
	"context"
	"fmt"

	"lashd/engine/filepoint"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// keepCopies stores where copies lie. Nobody tidies up as long as a workspace is taken.
func (w *workspace) keepCopies(ctx context.Context, copies []persistence.FileCopy) error {
	if len(copies) == 0 {
		return nil
	}
	return w.commit(ctx, persistence.FileCommit{Copies: copies})
}

// present is what stands at a path now. What a look leaves out is looked at here, and copied if somebody may want it back.
func (w *workspace) present(ctx context.Context, dir *filepoint.Workspace, path string, keep bool) (*protocol.FileState, error) {
	f, err := dir.Look(path)
	if f == nil || err != nil {
		return nil, err
	}
	if was, known := w.known.Get(path); known && filepoint.Same(was, *f) {
		return &was.FileState, nil
	}
	limits := w.eng.Files
	if !keep {
		dir.Read(ctx, f, limits.FileSize)
		return &f.FileState, nil
	}
	one := []persistence.WorkspaceFile{*f}
	copies, err := dir.Capture(ctx, one, copier{w.eng}, limits.FileSize, limits.Budget/2)
	if err == nil {
		err = w.keepCopies(ctx, copies)
	}
	return &one[0].FileState, err
}

// copier keeps copies for filepoint.
type copier struct{ eng *Engine }

func (c copier) Known(ctx context.Context, digests []protocol.Digest) (map[protocol.Digest]bool, error) {
	return c.eng.store.KnownCopies(ctx, digests)
}

func (c copier) Add(contents map[protocol.Digest][]byte) ([]persistence.FileCopy, error) {
	return c.eng.files.shelf.Add(contents)
}

// contentOf reads the copy of a file.
func (e *Engine) contentOf(ctx context.Context, s *protocol.FileState) ([]byte, error) {
	if s == nil || s.Kind != protocol.FileRegular {
		return nil, nil
	}
	if s.Digest == "" {
		return nil, fmt.Errorf("there is no copy: %s", s.Problem)
	}
	c, err := e.store.Copy(ctx, s.Digest)
	if err != nil {
		return nil, err
	}
	data, err := e.files.shelf.Read(c)
	if err != nil { // it may have been moved just now
		if c, err = e.store.Copy(ctx, s.Digest); err == nil {
			data, err = e.files.shelf.Read(c)
		}
	}
	return data, err
}
