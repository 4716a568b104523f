package filepoint

import (
	"context"
	"errors"
	"path"
	"slices"
	"sync"
	"time"

	"lashd/internal/pathresolve"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

const (
	readers   = 4
	chunk     = 256             // files that are read before it is asked which copies are there already
	chunkSize = 16 << 20        // bytes, likewise
	racy      = 2 * time.Second // within which a file may be changed again without its time telling, on some file systems
)

// Keeper is where copies are kept.
type Keeper interface {
	// Known tells which of these contents have a copy.
	Known(ctx context.Context, digests []protocol.Digest) (map[protocol.Digest]bool, error)
	// Add keeps copies, and tells where they lie.
	Add(contents map[protocol.Digest][]byte) ([]persistence.FileCopy, error)
}

// Capture reads files and keeps copies of them. Each has then its digest, or the problem that kept it from having one. Of files up to
// limit bytes, and of as many as fit into room beside those that have a copy; once ctx is done the others are late. An error is of keeping: no file has a copy then.
func (w *Workspace) Capture(ctx context.Context, files []persistence.WorkspaceFile, keep Keeper, limit, room int64) (copies []persistence.FileCopy, err error) {
	for len(files) > 0 {
		part := files[:nextChunk(files, limit)]
		contents := w.readAll(ctx, part, limit, &room)
		known, err := keep.Known(context.WithoutCancel(ctx), digests(contents))
		if err != nil {
			return nil, err
		}
		for d := range known {
			delete(contents, d)
		}
		added, err := keep.Add(contents)
		if err != nil {
			return nil, err
		}
		copies, files = append(copies, added...), files[len(part):]
	}
	return copies, nil
}

func nextChunk(files []persistence.WorkspaceFile, limit int64) int {
	size := int64(0)
	for i := range files {
		if size += min(files[i].Size, limit); i == chunk || size > chunkSize {
			return max(i, 1)
		}
	}
	return len(files)
}

func digests(contents map[protocol.Digest][]byte) []protocol.Digest {
	all := make([]protocol.Digest, 0, len(contents))
	for d := range contents {
		all = append(all, d)
	}
	return all
}

// readAll reads files side by side.
func (w *Workspace) readAll(ctx context.Context, files []persistence.WorkspaceFile, limit int64, room *int64) map[protocol.Digest][]byte {
	var wg sync.WaitGroup
	r := &reading{Workspace: w, limit: limit, room: room, contents: map[protocol.Digest][]byte{}}
	for part := range slices.Chunk(files, max(1, (len(files)+readers-1)/readers)) {
		wg.Go(func() {
			dirs := &lastDir{}
			defer dirs.close()
			for i := range part {
				r.take(ctx, &part[i], dirs)
			}
		})
	}
	wg.Wait()
	return r.contents
}

// reading is what several read at once.
type reading struct {
	*Workspace
	limit int64 // of one file

	mu       sync.Mutex
	room     *int64 // for contents of which there are no copies
	contents map[protocol.Digest][]byte
}

// take reads a file, if there is room for it.
func (r *reading) take(ctx context.Context, f *persistence.WorkspaceFile, dirs *lastDir) {
	if f.Kind != protocol.FileRegular {
		return
	}
	kept := f.Digest != "" // it has its room
	r.mu.Lock()
	full := !kept && *r.room < f.Size
	r.mu.Unlock()
	if full {
		f.Digest, f.Problem = "", protocol.FileNoRoom
		return
	}
	data, problem := r.content(ctx, f, dirs, r.limit)
	r.mu.Lock()
	defer r.mu.Unlock()
	if problem == "" && !kept && int64(len(data)) > *r.room {
		problem = protocol.FileNoRoom
	}
	if f.Problem = problem; problem != "" {
		return
	}
	if !kept {
		*r.room -= int64(len(data))
	}
	f.Digest = protocol.DigestOf(data)
	r.contents[f.Digest] = data
}

// content reads a file, or says why not.
func (w *Workspace) content(ctx context.Context, f *persistence.WorkspaceFile, dirs *lastDir, limit int64) ([]byte, protocol.FileProblem) {
	f.Digest, f.Problem = "", ""
	switch {
	case ctx.Err() != nil:
		return nil, protocol.FileLate
	case f.Size > limit:
		return nil, protocol.FileTooLarge
	}
	data, err := w.read(f, dirs, limit)
	switch {
	case errors.Is(err, pathresolve.ErrReplaced), errors.Is(err, errChanging):
		return nil, protocol.FileLate
	case err != nil:
		return nil, protocol.FileUnreadable
	case int64(len(data)) > limit:
		return nil, protocol.FileTooLarge
	case privileged(f.Mode):
		return nil, protocol.FilePrivileged
	}
	if f.Size = int64(len(data)); young(max(f.ModifiedNs, f.ChangedNs)) {
		f.ModifiedNs = 0 // nobody can tell by its time whether it changes once more in this moment
	}
	return data, ""
}

// Read tells what a file holds, without keeping a copy of it.
func (w *Workspace) Read(ctx context.Context, f *persistence.WorkspaceFile, limit int64) {
	if f.Kind != protocol.FileRegular {
		return
	}
	dirs := &lastDir{}
	defer dirs.close()
	data, problem := w.content(ctx, f, dirs, limit)
	if f.Problem = problem; problem == "" {
		f.Digest = protocol.DigestOf(data)
	}
}

// lastDir is the directory in which a file was read last: the next one is often in it, too.
type lastDir struct {
	path  string
	at    pathresolve.Dir
	there bool
}

func (l *lastDir) of(w *Workspace, file string) (pathresolve.Dir, error) {
	dir := path.Dir(file)
	if l.there && l.path == dir {
		return l.at, nil
	}
	l.close()
	at, err := w.place(file)
	if err == nil {
		l.path, l.at, l.there = dir, at, true
	}
	return at, err
}

func (l *lastDir) close() {
	if l.there {
		l.at.Close()
		l.there = false
	}
}

// Same tells whether a file is as it was when it was looked at before, so that it need not be read.
func Same(was, now persistence.WorkspaceFile) bool {
	was.Digest, was.Problem, now.Digest, now.Problem = "", "", "", ""
	return was == now
}

// Changed tells whether a file that had to be looked at again is another one than before.
func Changed(was, now *persistence.WorkspaceFile) bool {
	if was.Kind == protocol.FileRegular && (was.Digest == "" || now.Digest == "") {
		return !Same(*was, *now)
	}
	return !Equal(&was.FileState, &now.FileState)
}

// Equal tells whether two states are the same; nil is nothing.
func Equal(a, b *protocol.FileState) bool { return a == b || a != nil && b != nil && *a == *b }
