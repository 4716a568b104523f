package manifest

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A file may have become a pipe between the check and the open.
func TestOpeningAPipeDoesNotWaitForAWriter(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "p"), 0o644); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	done := make(chan error, 1)
	go func() {
		_, _, err := openRegular(root, "p")
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil || err.Error() != "p is not a regular file" {
			t.Errorf("got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits")
	}
}
