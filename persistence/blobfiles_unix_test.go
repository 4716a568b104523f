//go:build unix

package persistence

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

// TestRangesOfDamagedBlobs changes a byte that the range does not hold.
func TestRangesOfDamagedBlobs(t *testing.T) {
	begin := func(t *testing.T, size int) (*Store, protocol.Digest) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		b, err := s.PrepareBlob(make([]byte, size))
		if err != nil {
			t.Fatal(err)
		}
		commit(t, s, &Commit{Session: "ses_a", Blobs: []Blob{b}})
		return s, b.Digest
	}
	wants := func(t *testing.T, s *Store, d protocol.Digest, want error) {
		t.Helper()
		if part, _, err := s.BlobRange(t.Context(), d, 0, 1); !errors.Is(err, want) || err != nil && len(part) > 0 {
			t.Errorf("%v, %v, want %v", part, err, want)
		}
	}
	t.Run("outside/13 a range of a damaged blob in a row is not read", func(t *testing.T) {
		s, d := begin(t, 5000)
		wants(t, s, d, nil)
		tamper(t, filepath.Dir(s.path), "UPDATE blobs SET body = CAST(x'01' || substr(body, 2) AS BLOB) WHERE digest = ?", d)
		wants(t, s, d, ErrCorrupt)
	})
	t.Run("outside/13 a range of a damaged blob in a file is not read, even if the damage happens after the first read", func(t *testing.T) {
		s, d := begin(t, inlineBlob+20)
		wants(t, s, d, nil)
		wants(t, s, d, nil)
		f, err := os.OpenFile(s.writer.blobs.path(d), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAt([]byte{1}, inlineBlob)
		later := time.Now().Add(time.Minute) // the clock of a file system may not have moved on
		if err := errors.Join(err, f.Close(), os.Chtimes(f.Name(), later, later)); err != nil {
			t.Fatal(err)
		}
		wants(t, s, d, ErrCorrupt)
	})
}

func TestBlobFiles(t *testing.T) {
	t.Run("issue/2 a blob without its file is reported as damaged, one whose file cannot be opened is not", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		b, err := s.PrepareBlob(make([]byte, inlineBlob+20))
		if err != nil {
			t.Fatal(err)
		}
		commit(t, s, &Commit{Session: "ses_a", Blobs: []Blob{b}})
		file := s.writer.blobs.path(b.Digest)
		if err := errors.Join(os.Remove(file), os.Symlink(file, file)); err != nil { // it leads to itself
			t.Fatal(err)
		}
		if _, _, err := s.BlobRange(t.Context(), b.Digest, 0, 1); err == nil || errors.Is(err, ErrCorrupt) {
			t.Errorf("of a link to itself: %v", err)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.BlobRange(t.Context(), b.Digest, 0, 1); !errors.Is(err, ErrCorrupt) {
			t.Errorf("of no file: %v", err)
		}
	})
}
