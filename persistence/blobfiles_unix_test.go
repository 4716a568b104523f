//go:build unix

package persistence

import (
	"errors"
	"os"
	"testing"
)

func TestBlobFiles(t *testing.T) {
	t.Run("issue/2 a blob whose file cannot be opened is not called damaged, one without its file is", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		b, err := s.PrepareBlob(make([]byte, inlineBlob+20))
		if err != nil {
			t.Fatal(err)
		}
		commit(t, s, &Commit{Session: "ses_a", Blobs: []Blob{b}})
		file := s.blobs.path(b.Digest)
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
