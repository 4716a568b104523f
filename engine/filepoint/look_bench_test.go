package filepoint_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/engine/filepoint"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// noCopies is a Keeper that stores nothing.
type noCopies struct{}

func (noCopies) Known(context.Context, []protocol.Digest) (map[protocol.Digest]bool, error) {
	return nil, nil
}

func (noCopies) Add(map[protocol.Digest][]byte) ([]persistence.FileCopy, error) { return nil, nil }

// BenchmarkLook scans a workspace of 20,000 files in 200 directories: with an empty index,
// with a full index, and with a read of every file.
func BenchmarkLook(b *testing.B) {
	dir := b.TempDir()
	text := strings.Repeat("some text of a file\n", 200)
	for i := range 20_000 {
		file := filepath.Join(dir, fmt.Sprintf("d%03d", i%200), fmt.Sprintf("f%05d.txt", i))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	w, err := filepoint.Open(dir, "")
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	walk := func(b *testing.B, ix *filepoint.Index) []persistence.WorkspaceFile {
		sight, err := w.Walk(b.Context(), ix, 100_000, false)
		if err != nil {
			b.Fatal(err)
		}
		return sight.News
	}
	known := walk(b, filepoint.NewIndex(nil))
	b.Run("walk=first", func(b *testing.B) {
		for b.Loop() {
			walk(b, filepoint.NewIndex(nil))
		}
	})
	b.Run("walk=again", func(b *testing.B) {
		ix := filepoint.NewIndex(known)
		for b.Loop() {
			walk(b, ix)
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			files := append([]persistence.WorkspaceFile(nil), known...)
			if _, err := w.Capture(b.Context(), files, noCopies{}, 1<<20, 1<<40); err != nil {
				b.Fatal(err)
			}
		}
	})
}
