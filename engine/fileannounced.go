package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"lashd/engine/filepoint"
	"lashd/rpc/protocol"
)

func (f *turnFiles) hasSaid() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.said) > 0
}

// announced takes a copy of what a tool is about to change, if looks leave it out. What keeps it from that is told by the look after
// the tool.
func (f *turnFiles) announced(ctx context.Context, path string) {
	was, err := f.before(ctx, path)
	if ctx.Err() != nil || errors.Is(err, fs.ErrPermission) {
		return // the tool changes nothing
	}
	f.miss(path, err)
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, twice := f.said[path]; was.leftOut && err == nil && !twice {
		f.said[path] = was.is
	}
}

// miss notes that it is not known what a path was, or has become.
func (f *turnFiles) miss(path string, err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unsaid = fmt.Errorf("%s: %w", path, err)
}

// before is what stands at a path that looks leave out.
func (f *turnFiles) before(ctx context.Context, path string) (leftFile, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, filePatience, errFilesSlow)
	defer cancel()
	return alone(ctx, f.workspace, func() (was leftFile, err error) {
		if err := f.learn(ctx); err != nil {
			return was, err
		}
		if _, known := f.known.Get(path); known {
			return was, nil
		}
		dir, err := filepoint.Open(f.root, f.eng.StateDir)
		if err != nil {
			return was, err
		}
		defer dir.Close()
		is, err := f.present(ctx, dir, path, true)
		return leftFile{is, true}, err
	})
}

// leftFile is what stands at a path, if looks leave that out.
type leftFile struct {
	is      *protocol.FileState
	leftOut bool
}

// saidDeltas are the changes that were announced and that a look did not find.
func (f *turnFiles) saidDeltas(ctx context.Context, found []delta) (deltas []delta) {
	f.mu.Lock()
	said := f.said
	f.said = map[string]*protocol.FileState{}
	f.mu.Unlock()
	for _, d := range found {
		delete(said, d.path)
	}
	if len(said) == 0 {
		return nil
	}
	dir, err := filepoint.Open(f.root, f.eng.StateDir)
	if err != nil {
		f.miss(f.root, err)
		return nil
	}
	defer dir.Close()
	for path, before := range said {
		after, err := f.present(ctx, dir, path, true)
		f.miss(path, err)
		if err == nil && !filepoint.Equal(before, after) {
			deltas = append(deltas, delta{path, before, after})
		}
	}
	return deltas
}
