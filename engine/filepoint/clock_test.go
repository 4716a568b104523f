package filepoint

import (
	"os"
	"path/filepath"
	"testing"
)

func TestNow(t *testing.T) {
	t.Run("issue/6-2 a file never gets a time stamp before Now", func(t *testing.T) {
		dir := t.TempDir()
		for range 2000 {
			before := Now()
			path := filepath.Join(dir, "a.txt")
			if err := os.WriteFile(path, []byte("new\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if info.ModTime().Before(before) {
				t.Fatalf("written after %v, and of %v", before, info.ModTime())
			}
		}
	})
}
