package filepoint

import (
	"bytes"
	"compress/flate"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"lashd/internal/durable"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// packEnding is the file extension of packs.
const packEnding = ".pack"

// Shelf stores compressed copies of files in pack files, one after the other, in a private
// directory. Copies are synced before Add returns their places. The store records those
// places; bytes without a record are garbage that a later tidying removes. A Shelf is safe
// for concurrent use.
type Shelf struct {
	dir string
	// packSize is the size in bytes after which Add starts another pack.
	packSize int64

	mu sync.Mutex
	// name is the pack that Add writes to. It keeps its value when the pack is closed.
	name string
	// pack is the open pack, or nil. size is its length, where the next copy begins.
	pack *os.File
	size int64
	// grown is the number of bytes written since the last call of Grown.
	grown int64
}

// NewShelf returns a shelf below the daemon's state directory. It creates no files until
// Add.
func NewShelf(stateDir string, packSize int64) *Shelf {
	return &Shelf{dir: filepath.Join(stateDir, "files"), packSize: packSize}
}

// Add writes copies and returns their places after they are synced, one sync for all of
// them. After an error it starts a new pack on the next call, so a partly written copy
// never gets a place. The contents are compressed without the lock.
func (s *Shelf) Add(contents map[protocol.Digest][]byte) ([]persistence.FileCopy, error) {
	if len(contents) == 0 {
		return nil, nil
	}
	packed := deflate(contents)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.openLocked(); err != nil {
		return nil, err
	}
	var all []persistence.FileCopy
	for d, data := range packed {
		if _, err := s.pack.WriteAt(data, s.size); err != nil {
			return nil, errors.Join(err, s.closeLocked())
		}
		all = append(all, persistence.FileCopy{Digest: d, Pack: s.name, At: s.size, Length: int64(len(data))})
		s.size += int64(len(data))
		s.grown += int64(len(data))
	}
	if err := s.pack.Sync(); err != nil {
		return nil, errors.Join(err, s.closeLocked())
	}
	return all, nil
}

// openLocked opens a new pack if there is none or the current one is full. The caller holds
// mu.
func (s *Shelf) openLocked() error {
	if s.pack != nil && s.size < s.packSize {
		return nil
	}
	if err := errors.Join(s.closeLocked(), os.MkdirAll(s.dir, 0o700)); err != nil {
		return err
	}
	name := strings.ToLower(rand.Text())
	f, err := os.OpenFile(s.path(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	s.name, s.pack, s.size = name, f, 0
	return errors.Join(durable.Sync(s.dir), durable.Sync(filepath.Dir(s.dir)))
}

// closeLocked closes the current pack, if any. The caller holds mu.
func (s *Shelf) closeLocked() error {
	if s.pack == nil {
		return nil
	}
	err := s.pack.Close()
	s.pack = nil
	return err
}

// Close closes the current pack. A later Add starts a new one.
func (s *Shelf) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closeLocked()
}

func (s *Shelf) path(pack string) string { return filepath.Join(s.dir, pack+packEnding) }

// Read returns the content of a copy. It fails if the pack is missing or the bytes do not
// match the digest, so a damaged copy is never restored.
func (s *Shelf) Read(c persistence.FileCopy) ([]byte, error) {
	f, err := os.Open(s.path(c.Pack))
	if err != nil {
		return nil, fmt.Errorf("copy %s: %w", c.Digest, err)
	}
	defer f.Close()
	data, err := io.ReadAll(flate.NewReader(io.NewSectionReader(f, c.At, c.Length)))
	if err == nil && protocol.DigestOf(data) != c.Digest {
		err = errors.New("its content does not match its digest")
	}
	if err != nil {
		return nil, fmt.Errorf("copy %s: %w", c.Digest, err)
	}
	return data, nil
}

// Packs returns the sizes in bytes of all packs except the current one.
func (s *Shelf) Packs() (map[string]int64, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	s.mu.Lock()
	current := s.name
	s.mu.Unlock()
	packs := map[string]int64{}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), packEnding)
		if fi, err := e.Info(); ok && err == nil && name != current {
			packs[name] = fi.Size()
		}
	}
	return packs, err
}

// Remove deletes a pack. The store must not refer to it.
func (s *Shelf) Remove(pack string) error { return os.Remove(s.path(pack)) }

// Grown returns the number of bytes written since its last call.
func (s *Shelf) Grown() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	grown := s.grown
	s.grown = 0
	return grown
}

// deflate compresses contents. It uses one writer for all of them, because creating a
// writer costs more than compressing a small file.
func deflate(contents map[protocol.Digest][]byte) map[protocol.Digest][]byte {
	w, _ := flate.NewWriter(nil, flate.BestSpeed) // fails only for an invalid level
	packed := make(map[protocol.Digest][]byte, len(contents))
	for d, data := range contents {
		var out bytes.Buffer
		w.Reset(&out)
		_, _ = w.Write(data) // a buffer never fails
		_ = w.Close()
		packed[d] = out.Bytes()
	}
	return packed
}

// Move copies contents to the current pack and returns their new places. damaged joins the
// errors of copies that could not be read; they are skipped.
func (s *Shelf) Move(copies []persistence.FileCopy) (moved []persistence.FileCopy, damaged, err error) {
	contents := map[protocol.Digest][]byte{}
	for _, c := range copies {
		data, err := s.Read(c)
		if err != nil {
			damaged = errors.Join(damaged, err)
			continue
		}
		contents[c.Digest] = data
	}
	moved, err = s.Add(contents)
	return moved, damaged, err
}
