//go:build unix

package watch_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lashd/pluginloader/watch"
)

func pipe(t *testing.T, name string) {
	t.Helper()
	check(t, syscall.Mkfifo(name, 0o644))
}

// said is a log that may be read while it is written.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.text.String(), what)
}

func TestARootThatCannotBeWatchedIsPolled(t *testing.T) {
	t.Parallel()
	dir := plugins(t)
	log := &said{}
	depth := strings.Count(dir, "/")
	// There is room for the way to the root and for half of what is in it.
	w := start(t, watch.Config{
		Limits: watch.Limits{Watches: depth + 5}, Poll: 50 * time.Millisecond, Rescan: 2 * settle,
		Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	w.begin(dir)
	s := w.mode(dir, watch.Polling)
	t.Run("reliability/P13 the status has the reason", func(t *testing.T) {
		if want := fmt.Sprintf("no more than %d directories are watched", depth+5); s.Reason != want || s.Dirs != 0 {
			t.Errorf("%+v, want %s", s, want)
		}
		time.Sleep(6 * settle) // it is tried again
		if n := log.count("level=WARN"); n != 1 {
			t.Errorf("it was logged %d times", n)
		}
	})
	t.Run("reliability/P13 a root is watched again once the system allows it", func(t *testing.T) {
		check(t, os.RemoveAll(filepath.Join(dir, "p")), os.RemoveAll(filepath.Join(dir, "linked")), os.RemoveAll(filepath.Join(dir, "current")), os.RemoveAll(filepath.Join(dir, "..data")))
		for deadline := time.Now().Add(20 * time.Second); w.Status()[0].Mode == watch.Polling; {
			w.expect(dir)
			if time.Now().After(deadline) {
				t.Fatalf("still %+v", w.Status())
			}
		}
		if n := log.count("is fully watched again"); n != 1 {
			t.Errorf("it was logged %d times", n)
		}
	})
}

func TestWhatIsBeyondTheLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits watch.Limits
		make   func(t *testing.T, dir string)
		want   string
	}{
		"a plugin with too many files": {watch.Limits{Entries: 20}, func(t *testing.T, dir string) {
			for i := range 30 {
				write(t, "", dir, "a", fmt.Sprint(i), "f")
			}
		}, "DIR/a has too many files"},
		"a plugin that is too deep": {watch.Limits{Depth: 3}, func(t *testing.T, dir string) {
			write(t, "", dir, "a/1/2/3/4/f")
		}, "DIR/a has more than 3 directories inside one another"},
		"too many plugins": {watch.Limits{Plugins: 3}, func(t *testing.T, dir string) {
			for i := range 9 {
				write(t, "", dir, fmt.Sprint("z", i), "f")
			}
		}, "DIR has more than 3 entries"},
		"a link that leads to itself": {watch.Limits{}, func(t *testing.T, dir string) {
			check(t, os.Symlink("self", filepath.Join(dir, "self")))
		}, ""},
	} {
		t.Run("issue/4-4 "+name+" does not keep others from being watched", func(t *testing.T) {
			dir := filepath.Join(realDir(t), "plugins")
			write(t, "old", dir, "b/plugin.json")
			c.make(t, dir)
			w := start(t, watch.Config{Limits: c.limits})
			w.begin(dir)
			if got, want := w.mode(dir, watch.Events).Reason, strings.ReplaceAll(c.want, "DIR", dir); got != want {
				t.Errorf("the reason is %q, want %q", got, want)
			}
			swap(t, "new", dir, "b/plugin.json")
			w.expect(dir)
			w.quiet()
		})
	}
}

// A pipe where a directory was must not be waited for.
func TestNothingIsWaitedFor(t *testing.T) {
	t.Parallel()
	for mode, config := range modes {
		t.Run(fmt.Sprintf("reliability/T6 pipes and links by %s", mode), func(t *testing.T) {
			dir := plugins(t)
			pipe(t, filepath.Join(dir, "pipe"))
			pipe(t, filepath.Join(dir, "p/pipe"))
			check(t, os.Symlink("/", filepath.Join(dir, "everything")))
			check(t, os.Symlink("..", filepath.Join(dir, "up")))
			check(t, os.Symlink("loop", filepath.Join(dir, "loop")))
			check(t, os.Symlink(".", filepath.Join(dir, "p/self")))
			config.Limits.Entries, config.Limits.Total = 100, 1000
			w := start(t, config)
			w.begin(dir)
			write(t, "new", dir, "p/plugin.json")
			w.expect(dir)
		})
	}
}

// The queue of the system holds some 16,000 events. If they are not read, further events get lost, and the last change is
// among them.
func TestLostEventsAreMadeUpFor(t *testing.T) {
	t.Run("reliability/P13 a flood of changes", func(t *testing.T) {
		dir := filepath.Join(realDir(t), "plugins")
		for i := range 50 {
			write(t, "old", dir, fmt.Sprint(i), "plugin.json")
		}
		w := start(t, watch.Config{})
		w.begin(dir)
		var floods sync.WaitGroup
		for i := range 8 {
			floods.Go(func() {
				name := filepath.Join(dir, fmt.Sprint(i), "f")
				for range 3000 {
					_ = os.WriteFile(name, []byte("x"), 0o644)
					_ = os.Remove(name)
				}
			})
		}
		floods.Wait()
		write(t, "new", dir, "new/deep/plugin.json")
		w.settled(dir, filepath.Join(dir, "new/deep/plugin.json"), "new")
		write(t, "newer", dir, "new/deep/plugin.json")
		w.settled(dir, filepath.Join(dir, "new/deep/plugin.json"), "newer")
	})
}

func TestWhatNeverSettlesIsToldAnyway(t *testing.T) {
	t.Parallel()
	for mode, config := range modes {
		t.Run(fmt.Sprintf("issue/4-4 a file that is written all the time, by %s", mode), func(t *testing.T) {
			dir := plugins(t)
			config.Settle = 50 * time.Millisecond
			w := start(t, config)
			w.begin(dir)
			stop := make(chan struct{})
			var writing sync.WaitGroup
			writing.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					case <-time.After(5 * time.Millisecond):
						_ = os.WriteFile(filepath.Join(dir, "p/log"), fmt.Append(nil, i), 0o644)
					}
				}
			})
			defer writing.Wait()
			defer close(stop)
			begun := time.Now()
			for range 4 {
				w.expect(dir)
			}
			if took := time.Since(begun); took < 4*config.Settle || took > 400*config.Settle {
				t.Errorf("four looks in %s, want one in about %s", took, 10*config.Settle)
			}
		})
	}
}

// A directory that was moved and then removed before anybody looked makes errors, which must not hold anything up.
func TestDirectoriesThatComeAndGoQuickly(t *testing.T) {
	t.Parallel()
	t.Run("reliability/P13 moved and removed", func(t *testing.T) {
		dir := filepath.Join(realDir(t), "plugins")
		check(t, os.MkdirAll(dir, 0o755))
		w := start(t, watch.Config{Settle: 5 * time.Millisecond})
		w.begin(dir)
		rounds := 100
		if os.Getenv("LASHD_LONG") != "" {
			rounds = 300
		}
		for i := range rounds {
			for d := range 10 {
				check(t, os.MkdirAll(filepath.Join(dir, fmt.Sprint("p", d), "a"), 0o755))
			}
			if i%10 == 0 {
				w.expect(dir)
			}
			for d := range 10 {
				check(t, os.Rename(filepath.Join(dir, fmt.Sprint("p", d), "a"), filepath.Join(dir, "../gone")))
				check(t, os.Rename(filepath.Join(dir, fmt.Sprint("p", d)), filepath.Join(dir, "../gone/p")), os.RemoveAll(filepath.Join(dir, "../gone")))
			}
		}
		write(t, "new", dir, "p/plugin.json")
		w.settled(dir, filepath.Join(dir, "p/plugin.json"), "new")
	})
}
