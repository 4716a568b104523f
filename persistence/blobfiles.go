package persistence

import (
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

	"lashd/rpc/protocol"
)

// blobWait is how long a file that no row names is kept for the commit that will.
const blobWait = time.Hour

// blobFiles are the large blobs, each in a file named by its digest. A file is removed only after the commit that
// removed its row, and never while a commit that will name it is under way.
type blobFiles struct {
	dir string

	mu      sync.Mutex
	pending map[protocol.Digest]pendingBlob
	held    int // backups under way, during which no file goes
	// verified has the files that had the right bytes when they were read, as they were then.
	verified map[protocol.Digest]fs.FileInfo
}

type pendingBlob struct {
	users int
	since time.Time
}

func newBlobFiles(dir string) *blobFiles {
	return &blobFiles{dir: dir, pending: map[protocol.Digest]pendingBlob{}, verified: map[protocol.Digest]fs.FileInfo{}}
}

func (b *blobFiles) path(d protocol.Digest) string {
	return filepath.Join(b.dir, string(d[:2]), string(d))
}

// put writes a file for a commit to come. It is announced first: a removal that comes between would take the new file.
func (b *blobFiles) put(d protocol.Digest, data []byte) error {
	b.mu.Lock()
	b.pending[d] = pendingBlob{users: b.pending[d].users + 1, since: time.Now()}
	b.mu.Unlock()
	return b.write(d, data)
}

// settled says that a commit which names the file is durable.
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

func (b *blobFiles) write(d protocol.Digest, data []byte) error {
	path := b.path(d)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".part-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // after the rename there is nothing under that name
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return errors.Join(syncDir(filepath.Dir(path)), syncDir(b.dir), syncDir(filepath.Dir(b.dir)))
}

func (b *blobFiles) read(d protocol.Digest) ([]byte, error) {
	data, err := os.ReadFile(b.path(d))
	return data, missing(err)
}

// missing says of a file that is not there that the store is damaged. What else hinders reading it passes.
func missing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("its file is missing: %w", ErrCorrupt)
	}
	return err
}

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

// maxVerified is how many files are known to be verified. Beyond it all are verified anew.
const maxVerified = 1000

// verify reads a whole file, unless it was verified and has not changed. 64 MiB take about 50 ms, so not every range can pay for it.
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

func (b *blobFiles) isVerified(d protocol.Digest, now fs.FileInfo) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	then := b.verified[d]
	return then != nil && os.SameFile(then, now) && then.Size() == now.Size() && then.ModTime().Equal(now.ModTime())
}

// has tells whether the file is there with the size that a row is about to claim.
func (b *blobFiles) has(d protocol.Digest, size int64) bool {
	info, err := os.Stat(b.path(d))
	return err == nil && info.Size() == size
}

// remove deletes a file that no row names, unless somebody is about to name it or to copy it.
func (b *blobFiles) remove(d protocol.Digest) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, waiting := b.pending[d]
	if b.held > 0 || (waiting && time.Since(p.since) < blobWait) {
		return nil // sweep comes back to it
	}
	delete(b.pending, d)
	if err := os.Remove(b.path(d)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (b *blobFiles) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held++
}

func (b *blobFiles) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held--
}

// sweep removes what crashes and abandoned commits left: files that are older than an hour and that no row names.
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
			return nil // too young, or gone by itself
		}
		if strings.HasPrefix(e.Name(), ".part-") {
			return os.Remove(path)
		}
		if len(e.Name()) != 64 {
			return nil // not ours
		}
		if used, err := named(protocol.Digest(e.Name())); used || err != nil {
			return err
		}
		return b.remove(protocol.Digest(e.Name()))
	})
}
