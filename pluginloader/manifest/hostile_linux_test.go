package manifest_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lashd/pluginloader/manifest"
)

func TestAPipeInPlaceOfAManifestIsNotWaitedFor(t *testing.T) {
	root := files{}.root(t)
	if err := syscall.Mkfifo(filepath.Join(root.Name(), "plugin.json"), 0o644); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := manifest.Load(root)
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "plugin.json: plugin.json is no regular file") {
			t.Errorf("got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for a writer")
	}
}
