package watch_test

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lashd/pluginloader/watch"
)

// TestMain runs many tests at once, because most of their time they wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// settle is long, so that a busy machine does not tear a change apart.
const settle = 150 * time.Millisecond

// watching is a running Watcher.
type watching struct {
	*watch.Watcher
	t *testing.T
}

// start starts a Watcher that ends with the test. The system's own limits cannot be set, so those who poll do so because of
// the limit of the Config.
func start(t *testing.T, c watch.Config) watching {
	t.Helper()
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Settle == 0 {
		c.Settle = settle
	}
	if c.Rescan == 0 {
		c.Rescan = time.Hour
	}
	w := watching{watch.New(c), t}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return w
}

// begin watches a root and waits until it is watched.
func (w watching) begin(root string) (stop func()) {
	w.t.Helper()
	stop = w.Watch(root)
	w.expect(root)
	return stop
}

// expect waits for one look at the roots.
func (w watching) expect(roots ...string) {
	w.t.Helper()
	select {
	case got := <-w.Changes():
		if !slices.Equal(got, roots) {
			w.t.Fatalf("look at %q, want %q", got, roots)
		}
	case <-time.After(20 * time.Second):
		w.t.Fatalf("nothing was reported of %q", roots)
	}
}

// quiet checks that no further change is reported.
func (w watching) quiet() {
	w.t.Helper()
	select {
	case got := <-w.Changes():
		w.t.Fatalf("look at %q, want none", got)
	case <-time.After(2 * settle):
	}
}

// mode waits until a root is watched that way.
func (w watching) mode(root string, want watch.Mode) watch.RootStatus {
	w.t.Helper()
	for _, s := range w.Status() {
		if s.Root == root && s.Mode == want {
			return s
		}
	}
	w.t.Fatalf("%+v, want %s as %s", w.Status(), root, want)
	return watch.RootStatus{}
}

// modes are both ways to find changes, each with a Config.
var modes = map[watch.Mode]watch.Config{
	watch.Events:  {},
	watch.Polling: {Limits: watch.Limits{Watches: 1}, Poll: 50 * time.Millisecond},
}

// write writes a file with the directories that it is in.
func write(t *testing.T, text string, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	check(t, os.MkdirAll(filepath.Dir(name), 0o755))
	check(t, os.WriteFile(name, []byte(text), 0o644))
}

// swap puts a file in its place at once and whole, so that it is one change however slow the machine is.
func swap(t *testing.T, text string, path ...string) {
	t.Helper()
	made := filepath.Join(t.TempDir(), "made")
	check(t, os.WriteFile(made, []byte(text), 0o644), os.Rename(made, filepath.Join(path...)))
}

func check(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// realDir is a temporary directory without links in its path.
func realDir(t *testing.T) string {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	return dir
}

// content is all that is in a directory: files with their modes, and links.
func content(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	check(t, filepath.WalkDir(dir+"/.", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil // a link to nothing
		}
		if info.IsDir() {
			b.WriteString(d.Name() + " {" + content(t, path) + "} ")
			return nil
		}
		text, err := os.ReadFile(path)
		b.WriteString(d.Name() + " " + info.Mode().String() + " " + string(text) + " ")
		return err
	}))
	return b.String()
}
