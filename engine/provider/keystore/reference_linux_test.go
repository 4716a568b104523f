package keystore_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lashd/engine/provider/keystore"
)

func TestPipeReference(t *testing.T) {
	t.Run("issue/18 a pipe is refused as a key file without waiting for a writer", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "k")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		failed := make(chan error, 1)
		go func() {
			_, err := keystore.Reference{File: path}.Reader(nil)(t.Context())
			failed <- err
		}()
		select {
		case err := <-failed:
			if err == nil || !strings.Contains(err.Error(), "is not a regular file; if a program makes the key, use key = {command = ...}") {
				t.Errorf("%v", err)
			}
		case <-time.After(5 * time.Second):
			t.Error("it waits for a writer")
		}
	})
}
