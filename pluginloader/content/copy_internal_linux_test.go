package content

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lashd/internal/pathresolve"
)

func TestFilesThatAreNotCopied(t *testing.T) {
	copyOf := func(t *testing.T, dir, name string) error {
		from, err1 := os.OpenRoot(dir)
		to, err2 := os.OpenRoot(t.TempDir())
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		defer from.Close()
		defer to.Close()
		return (&copier{from: from, to: to}).file(t.Context(), name)
	}
	t.Run("outside/10 a kernel file is not read", func(t *testing.T) {
		if err := copyOf(t, "/proc/self", "status"); !errors.Is(err, pathresolve.ErrKernelFile) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("outside/10 a pipe in place of a file is rejected without waiting", func(t *testing.T) {
		dir := t.TempDir()
		if err := syscall.Mkfifo(filepath.Join(dir, "p"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := copyOf(t, dir, "p"); err == nil || !strings.Contains(err.Error(), "p is not a regular file") {
			t.Errorf("got %v", err)
		}
	})
}
