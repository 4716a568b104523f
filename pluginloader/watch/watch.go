// Package watch reports directories that may have changed. The plugin loader and engine/trigger call it.
//
// A report is only a hint to scan again: the system may lose events or send needless ones. The package reports a directory after
// its changes have settled. It reports all directories periodically and whenever it may have missed an event. Its methods are
// safe for concurrent use.
package watch

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"lashd/engine/tip"
)

// Config configures a Watcher. Optional fields may be zero.
type Config struct {
	Log    *slog.Logger  // required
	Settle time.Duration // quiet time before a change is reported; default 60 ms. After ten times that, lashd reports it anyway
	Poll   time.Duration // interval for directories that cannot be watched; default 1 s
	Rescan time.Duration // interval at which everything is reported; default 30 s
	Limits Limits
	Skip   func(dir string) bool // directories to ignore, with everything below them; nil: none
}

// Limits bound what is watched. The part beyond them is found only at each rescan, and Status says
// so.
type Limits struct {
	Watches int // directories of all roots; default as many as the system allows
	Plugins int // entries of a root; default 256
	Entries int // files and directories in one plugin; default 10,000
	Depth   int // nesting of directories; default 32
	Total   int // files and directories in all plugins of a root; default 100,000

	dirs int // directories of one root; 0: no limit
}

// Default limits. They match the limits of the manifest package: a larger plugin does not load
// anyway.
const (
	maxPlugins = 256
	maxEntries = 10_000
	maxDepth   = 32
	maxTotal   = 100_000
)

// longest is the number of settle times after which a change that does not settle is reported.
const longest = 10

// filled returns c with the defaults.
func (c Config) filled() Config {
	c.Settle = cmp.Or(c.Settle, 60*time.Millisecond)
	c.Poll = cmp.Or(c.Poll, time.Second)
	c.Rescan = cmp.Or(c.Rescan, 30*time.Second)
	c.Limits.Plugins = cmp.Or(c.Limits.Plugins, maxPlugins)
	c.Limits.Entries = cmp.Or(c.Limits.Entries, maxEntries)
	c.Limits.Depth = cmp.Or(c.Limits.Depth, maxDepth)
	c.Limits.Total = cmp.Or(c.Limits.Total, maxTotal)
	return c
}

// Watcher watches roots: directories whose entries are plugin directories. Run does the work on its
// own goroutine; the other methods are safe to call before and during Run.
type Watcher struct {
	config  Config
	changes chan []string // unbuffered; Run sends, the receiver of Changes receives
	wanted  tip.Tip       // signals Run that users has changed

	mu     sync.Mutex
	users  map[string]int        // number of Watch calls per root
	bounds map[string]Bounds     // of each root in users
	status map[string]RootStatus // the last status of each root in users
}

// RootStatus describes how a root is watched.
type RootStatus struct {
	Root   string
	Mode   Mode
	Reason string // why events are not used, or which part is not watched; empty: all is well
	Dirs   int    // watched directories
}

// Mode is how changes of a root are found.
type Mode string

// The modes.
const (
	Events  Mode = "events"  // the system reports them
	Polling Mode = "polling" // the directory is scanned periodically
)

// New returns a Watcher. It starts nothing; call Run.
func New(c Config) *Watcher {
	return &Watcher{
		config: c.filled(), changes: make(chan []string),
		users: map[string]int{}, bounds: map[string]Bounds{}, status: map[string]RootStatus{},
	}
}

// Watch watches a directory until stop is called, which may be repeated. The directory may be
// missing, be a link, or be replaced later. It is reported once it is watched, and then whenever it
// may have changed.
func (w *Watcher) Watch(dir string) (stop func()) { return w.WatchWithin(dir, Bounds{}) }

// WatchWithin is Watch with bounds. Status says if they leave out a part. If several callers watch
// the same directory, the bounds of the first apply.
func (w *Watcher) WatchWithin(dir string, b Bounds) (stop func()) {
	if abs, err := filepath.Abs(dir); err == nil { // without a working directory, dir stays relative
		dir = abs
	}
	w.use(dir, 1, b)
	return sync.OnceFunc(func() { w.use(dir, -1, b) })
}

// use adds by to the number of users of a root and wakes Run.
func (w *Watcher) use(dir string, by int, b Bounds) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users[dir] == 0 {
		w.bounds[dir] = b
	}
	if w.users[dir] += by; w.users[dir] == 0 {
		delete(w.users, dir)
		delete(w.bounds, dir)
		delete(w.status, dir)
	}
	w.wanted.Notify()
}

// Changes returns the channel of roots to scan again, as absolute paths. Roots that change before
// the receiver is ready are collected into the next value. There must be one receiver. The channel
// is never closed; nothing is sent after Run returns.
func (w *Watcher) Changes() <-chan []string { return w.changes }

// Status returns the status of each root, sorted by path.
func (w *Watcher) Status() []RootStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.SortedFunc(maps.Values(w.status), func(a, b RootStatus) int { return cmp.Compare(a.Root, b.Root) })
}

// report stores the status of a root and logs a transition to or from incomplete watching.
func (w *Watcher) report(s RootStatus) {
	w.mu.Lock()
	before := w.status[s.Root]
	if w.users[s.Root] > 0 {
		w.status[s.Root] = s
	}
	w.mu.Unlock()
	switch {
	case s.Reason != "" && (before.Reason == "" || s.Mode != before.Mode):
		w.config.Log.Warn("changes of a directory may be noticed late", "root", s.Root, "mode", s.Mode, "reason", s.Reason)
	case s.Reason == "" && before.Reason != "":
		w.config.Log.Info("a directory is fully watched again", "root", s.Root)
	}
}

// Run watches until ctx is done and releases all resources. Call it once. The error is that of
// closing the system's watcher; without such a watcher, Run polls.
func (w *Watcher) Run(ctx context.Context) error {
	fs, err := fsnotify.NewWatcher()
	l := w.loop(fs, err)
	if err != nil {
		l.run(ctx)
		return nil
	}
	var drained sync.WaitGroup
	drained.Go(func() { l.drain(fs.Errors) })
	l.run(ctx)
	err = fs.Close()
	drained.Wait()
	return err
}

// loop returns the loop for Run. If fs is not available, without says why, and the loop polls.
func (w *Watcher) loop(fs *fsnotify.Watcher, without error) *loop {
	l := &loop{w: w, config: w.config, without: without, roots: map[string]*root{}, trouble: make(chan error, 1)}
	if without == nil {
		l.notes = &notes{fs: fs, limit: w.config.Limits.Watches, seen: map[string]os.FileInfo{}}
	}
	return l
}
