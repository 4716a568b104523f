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

	"lashd/persistence"
	"lashd/rpc/protocol"
)

const packEnding = ".pack"

// Shelf keeps copies of files, compressed, one after the other in packs: private files of a private directory. What is written is
// synced before anybody is told where it lies; what no row of the store names is garbage.
type Shelf struct {
	dir      string
	packSize int64 // beyond which another pack is begun

	mu    sync.Mutex
	name  string // of the pack that is written to
	pack  *os.File
	size  int64
	grown int64
}

// NewShelf keeps copies under the state directory of the daemon, in packs of about a size. It makes nothing yet.
func NewShelf(stateDir string, packSize int64) *Shelf {
	return &Shelf{dir: filepath.Join(stateDir, "files"), packSize: packSize}
}

// Add writes copies, and tells where they lie once they are on disk.
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
	return errors.Join(syncDir(s.dir), syncDir(filepath.Dir(s.dir)))
}

func (s *Shelf) closeLocked() error {
	if s.pack == nil {
		return nil
	}
	err := s.pack.Close()
	s.pack = nil
	return err
}

// Close ends writing; Add begins anew.
func (s *Shelf) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closeLocked()
}

func (s *Shelf) path(pack string) string { return filepath.Join(s.dir, pack+packEnding) }

// Read gives the content of a copy, or an error if that is not what was kept.
func (s *Shelf) Read(c persistence.FileCopy) ([]byte, error) {
	f, err := os.Open(s.path(c.Pack))
	if err != nil {
		return nil, fmt.Errorf("copy %s: %w", c.Digest, err)
	}
	defer f.Close()
	data, err := io.ReadAll(flate.NewReader(io.NewSectionReader(f, c.At, c.Length)))
	if err == nil && protocol.DigestOf(data) != c.Digest {
		err = errors.New("it has other bytes than it was made of")
	}
	if err != nil {
		return nil, fmt.Errorf("copy %s: %w", c.Digest, err)
	}
	return data, nil
}

// Packs are the sizes of the packs that are there and not written to any more.
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

// Remove lets a pack go that nothing is named of.
func (s *Shelf) Remove(pack string) error { return os.Remove(s.path(pack)) }

// Grown is how much was written since it was asked last.
func (s *Shelf) Grown() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	grown := s.grown
	s.grown = 0
	return grown
}

// deflate has one writer for all contents: to make one costs more than to compress a small file.
func deflate(contents map[protocol.Digest][]byte) map[protocol.Digest][]byte {
	w, _ := flate.NewWriter(nil, flate.BestSpeed) // fails only for a level that there is not
	packed := make(map[protocol.Digest][]byte, len(contents))
	for d, data := range contents {
		var out bytes.Buffer
		w.Reset(&out)
		_, _ = w.Write(data) // a buffer takes everything
		_ = w.Close()
		packed[d] = out.Bytes()
	}
	return packed
}

// Move writes copies anew, and tells where they lie now, and what is wrong with those that cannot be read.
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
