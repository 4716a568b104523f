package persistence

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"lashd/internal/durable"
	"lashd/rpc/protocol"
)

// blobWait is how long a file without a row is kept for the commit that will refer to it.
const blobWait = time.Hour

// blobFiles stores large blobs, each in a file named by its digest. A file is removed only after
// the commit that deleted its row, and never while a commit that will name it, or a backup, is in
// progress. It is safe for concurrent use.
type blobFiles struct {
	dir string

	mu sync.Mutex
	// pending counts, for each file, the prepared commits that will name it.
	pending map[protocol.Digest]pendingBlob
	held    int // running backups, during which no file is removed
	// verified holds the state of each file when its bytes were last verified.
	verified map[protocol.Digest]fs.FileInfo
}

// pendingBlob counts the commits that wait to name a file. since is the start of the newest; after
// blobWait it no longer protects the file.
type pendingBlob struct {
	users int
	since time.Time
}

// newBlobFiles returns the blob files in dir, which is created with the first file.
func newBlobFiles(dir string) *blobFiles {
	return &blobFiles{dir: dir, pending: map[protocol.Digest]pendingBlob{}, verified: map[protocol.Digest]fs.FileInfo{}}
}

// path returns the file of a digest. The first two digits are a directory, so that no directory
// gets too large.
func (b *blobFiles) path(d protocol.Digest) string {
	return filepath.Join(b.dir, string(d[:2]), string(d))
}

// put writes a file for a later commit. It registers the digest before it writes; otherwise a
// concurrent remove could delete the new file.
func (b *blobFiles) put(d protocol.Digest, data []byte) error {
	b.mu.Lock()
	b.pending[d] = pendingBlob{users: b.pending[d].users + 1, since: time.Now()}
	b.mu.Unlock()
	return b.write(d, data)
}

// settled records that a commit which names the file is durable.
func (b *blobFiles) settled(d protocol.Digest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.pending[d]
	if p.users--; !ok || p.users <= 0 {
		delete(b.pending, d)
	} else {
		b.pending[d] = p
	}
}

// write stores a file atomically and makes it durable: temporary file, fsync, rename, fsync of the
// directories.
func (b *blobFiles) write(d protocol.Digest, data []byte) error {
	path := b.path(d)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := durable.Replace(path, filepath.Join(filepath.Dir(path), ".part-"+rand.Text()), data, 0o600); err != nil {
		return err
	}
	return errors.Join(durable.Sync(b.dir), durable.Sync(filepath.Dir(b.dir)))
}

// read returns the content of a file without verifying it. The caller compares the digest.
func (b *blobFiles) read(d protocol.Digest) ([]byte, error) {
	data, err := os.ReadFile(b.path(d))
	return data, missing(err)
}

// missing turns the error of a missing file into ErrCorrupt. Other errors stay as they are.
func missing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("its file is missing: %w", ErrCorrupt)
	}
	return err
}

// readRange reads a part of a file after verifying the whole file.
func (b *blobFiles) readRange(d protocol.Digest, offset, limit int64) ([]byte, error) {
	f, err := os.Open(b.path(d))
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", d, missing(err))
	}
	defer f.Close()
	if err := b.verify(d, f); err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(f, offset, limit))
}

// maxVerified is the maximum number of files in verified. When it is reached, the map is cleared
// and every file is verified again on its next read.
const maxVerified = 1000

// verify reads the whole file f and compares its digest, unless it has been verified and has not
// changed since. Verifying 64 MiB takes about 50 ms, too long for every range.
func (b *blobFiles) verify(d protocol.Digest, f *os.File) error {
	now, err := f.Stat()
	if err != nil || b.isVerified(d, now) {
		return err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != string(d) {
		return otherBytes(d)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.verified) >= maxVerified {
		clear(b.verified)
	}
	b.verified[d] = now
	return nil
}

// isVerified reports whether the file is the one that was verified, by its identity, size and time.
func (b *blobFiles) isVerified(d protocol.Digest, now fs.FileInfo) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	then := b.verified[d]
	return then != nil && os.SameFile(then, now) && then.Size() == now.Size() && then.ModTime().Equal(now.ModTime())
}

// has reports whether the file exists with the given size.
func (b *blobFiles) has(d protocol.Digest, size int64) bool {
	info, err := os.Stat(b.path(d))
	return err == nil && info.Size() == size
}

// remove deletes a file that no row names. It leaves a file that a commit is about to name, and
// every file during a backup; a later sweep removes those.
func (b *blobFiles) remove(d protocol.Digest) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, waiting := b.pending[d]
	if b.held > 0 || (waiting && time.Since(p.since) < blobWait) {
		return nil // the sweep tries again
	}
	delete(b.pending, d)
	if err := os.Remove(b.path(d)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// hold stops the removal of files until release. Calls nest.
func (b *blobFiles) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held++
}

// release ends one hold.
func (b *blobFiles) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held--
}

// sweep removes files that crashes and abandoned commits have left: temporary files, and files
// without a row, if they are older than blobWait. named reports whether a row names the digest.
func (b *blobFiles) sweep(named func(protocol.Digest) (bool, error)) error {
	return filepath.WalkDir(b.dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < blobWait {
			return nil // too recent, or already removed
		}
		if strings.HasPrefix(e.Name(), ".part-") {
			return os.Remove(path)
		}
		if len(e.Name()) != 64 {
			return nil // not a file of lashd
		}
		if used, err := named(protocol.Digest(e.Name())); used || err != nil {
			return err
		}
		return b.remove(protocol.Digest(e.Name()))
	})
}
