package watch

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// run runs a loop until the test ends.
func run(t *testing.T, l *loop) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { l.run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

func told(t *testing.T, w *Watcher, want ...string) {
	t.Helper()
	select {
	case got := <-w.Changes():
		if !slices.Equal(got, want) {
			t.Fatalf("look at %q, want %q", got, want)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("nothing was reported, want %q", want)
	}
}

func TestLostEventsMakeEverythingLookedAt(t *testing.T) {
	t.Run("reliability/P13 a full system queue", func(t *testing.T) {
		fs, err := fsnotify.NewWatcher()
		if err != nil {
			t.Fatal(err)
		}
		defer fs.Close()
		w := New(Config{Log: slog.New(slog.DiscardHandler)})
		one, two := t.TempDir(), t.TempDir()
		w.Watch(one)
		w.Watch(two)
		l := w.loop(fs, nil)
		run(t, l)
		told(t, w, one, two)
		l.trouble <- fsnotify.ErrEventOverflow
		told(t, w, one, two)
	})
}

func TestWithoutEventsEverythingIsPolled(t *testing.T) {
	t.Run("reliability/P13 too many watchers in the system", func(t *testing.T) {
		w := New(Config{Log: slog.New(slog.DiscardHandler), Poll: 20 * time.Millisecond})
		dir := t.TempDir()
		w.Watch(dir)
		run(t, w.loop(nil, syscall.EMFILE))
		told(t, w, dir)
		if s := w.Status(); len(s) != 1 || s[0].Mode != Polling || s[0].Reason != "too many open files" {
			t.Errorf("%+v", s)
		}
		if err := errors.Join(os.Mkdir(filepath.Join(dir, "p"), 0o755), os.WriteFile(filepath.Join(dir, "p/plugin.json"), nil, 0o644)); err != nil {
			t.Fatal(err)
		}
		told(t, w, dir)
	})
}

// A path that leads to nothing must not be mistaken for its parent directory.
func TestNoPathIsNoDirectory(t *testing.T) {
	t.Run("reliability/P13 a path that leads to nothing", func(t *testing.T) {
		if s, err := Signature("", nil); err == nil {
			t.Errorf("it has the signature %s", s)
		}
		if entries, _, err := list("", 10); err == nil {
			t.Errorf("it has %d entries", len(entries))
		}
	})
}
