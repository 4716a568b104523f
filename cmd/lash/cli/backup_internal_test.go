package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestWatchCopy(t *testing.T) {
	t.Run("issue/21-4 a backup says how much of the data it has copied", func(t *testing.T) {
		dir := t.TempDir()
		write := func(size int) {
			path := filepath.Join(dir, ".lashd-backup-1", "lashd.db.part")
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var lines []string
			go watchCopy(ctx, dir, 3<<20, func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) })
			time.Sleep(700 * time.Millisecond) // nothing is there at the first look
			write(1 << 20)
			time.Sleep(500 * time.Millisecond)
			write(2<<20 + 1)
			time.Sleep(500 * time.Millisecond)
			cancel()
			synctest.Wait()
			if want := []string{"1 MiB of about 3 MiB written", "3 MiB of about 3 MiB written"}; !slices.Equal(lines, want) {
				t.Errorf("got %q, want %q", lines, want)
			}
		})
	})
}
