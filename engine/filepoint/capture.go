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

// Limits of one round of Capture.
const (
	// readers is the number of goroutines that read files.
	readers = 4
	// chunk is the number of files that are read before the keeper is asked which copies
	// exist.
	chunk = 256
	// chunkSize is the same limit in bytes.
	chunkSize = 16 << 20
	// racy is the time in which a file can change twice with the same modification time on
	// some file systems.
	racy = 2 * time.Second
)

// Keeper stores copies of files for Capture. Its methods are called from one goroutine at a
// time.
type Keeper interface {
	// Known returns the set of digests that already have a copy.
	Known(ctx context.Context, digests []protocol.Digest) (map[protocol.Digest]bool, error)
	// Add stores copies durably and returns their places. After an error no copy counts as
	// stored.
	Add(contents map[protocol.Digest][]byte) ([]persistence.FileCopy, error)
}

// Capture reads files and stores copies of them. Afterwards each regular file has either a
// Digest or the Problem that prevented a copy.
//
// A file has no copy if it is larger than limit bytes, if room bytes are used up, or if ctx
// ended before it was read. Files that already have a digest do not count against room. An
// error comes from the keeper; then no file of the round has a copy.
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

// nextChunk returns the number of files to read in one round, at least 1.
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

// readAll reads files with several goroutines and returns the contents by digest. It
// reduces room by the bytes of new contents.
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

// reading is the shared state of the goroutines of one readAll.
type reading struct {
	*Workspace
	// limit is the size in bytes up to which a file is read.
	limit int64

	mu sync.Mutex
	// room is the number of bytes left for contents without a copy. mu guards it and
	// contents.
	room     *int64
	contents map[protocol.Digest][]byte
}

// take reads one file if its content still fits. It sets the Digest or the Problem of f.
func (r *reading) take(ctx context.Context, f *persistence.WorkspaceFile, dirs *lastDir) {
	if f.Kind != protocol.FileRegular {
		return
	}
	kept := f.Digest != "" // it has a copy, which is already counted
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

// content reads a file and updates its size and times. It returns the problem if that
// fails.
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
		f.ModifiedNs = 0 // a second change may get the same time, so the next scan has to read the file again
	}
	return data, ""
}

// Read sets the Digest of a file, or its Problem, without storing a copy.
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

// lastDir caches the directory of the last file that was read, because the next file is
// often in the same one. It belongs to one goroutine, which closes it.
type lastDir struct {
	path  string
	at    pathresolve.Dir
	there bool
}

// of opens the directory of file, or returns the cached one. The lastDir keeps ownership.
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

// Same reports whether a file has the same metadata as before, so that it need not be read
// again.
func Same(was, now persistence.WorkspaceFile) bool {
	was.Digest, was.Problem, now.Digest, now.Problem = "", "", "", ""
	return was == now
}

// Changed reports whether the content or mode of a file differs from before. Without both
// digests it compares metadata.
func Changed(was, now *persistence.WorkspaceFile) bool {
	if was.Kind == protocol.FileRegular && (was.Digest == "" || now.Digest == "") {
		return !Same(*was, *now)
	}
	return !Equal(&was.FileState, &now.FileState)
}

// Equal reports whether two states are the same. Nil means that nothing exists at the path.
func Equal(a, b *protocol.FileState) bool { return a == b || a != nil && b != nil && *a == *b }
