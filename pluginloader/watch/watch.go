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

// Config is what a Watcher needs to know. Zero values of optional fields mean the default.
type Config struct {
	Log    *slog.Logger  // required
	Settle time.Duration // how long nothing may change before it is told; default 60 ms. After ten times that it is told anyway
	Poll   time.Duration // between two looks at a directory that cannot be watched; default 1 s
	Rescan time.Duration // between two looks at everything; default 30 s
	Limits Limits
	Skip   func(dir string) bool // directories nothing of which matters; nil: all matter
}

// Limits bound what is watched. What is beyond them is looked at with each rescan only, and Status says so.
type Limits struct {
	Watches int // directories, of all roots; default as many as the system allows
	Plugins int // entries of a root; default 256
	Entries int // of the directory of a plugin; default 10,000
	Depth   int // directories inside one another; default 32
	Total   int // entries of all plugins of a root; default 100,000

	dirs int // directories of one root; 0: any number
}

// What is watched if nothing else is said: as much as a plugin may be, of as many as a directory may have.
const (
	maxPlugins = 256
	maxEntries = 10_000
	maxDepth   = 32
	maxTotal   = 100_000
)

// longest is how many settle times a change is not told that does not settle.
const longest = 10

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

// Watcher watches roots: directories whose entries are the directories of plugins.
type Watcher struct {
	config  Config
	changes chan []string
	wanted  tip.Tip // what is in users has changed

	mu     sync.Mutex
	users  map[string]int // of each root
	bounds map[string]Bounds
	status map[string]RootStatus
}

// RootStatus is how a root is watched.
type RootStatus struct {
	Root   string
	Mode   Mode
	Reason string // why it is not watched by events, or not all of it
	Dirs   int    // directories that are watched
}

// Mode is how changes are found.
type Mode string

// The modes.
const (
	Events  Mode = "events"  // the system tells of them
	Polling Mode = "polling" // by looking every now and then
)

// New makes a Watcher. It starts nothing.
func New(c Config) *Watcher {
	return &Watcher{
		config: c.filled(), changes: make(chan []string),
		users: map[string]int{}, bounds: map[string]Bounds{}, status: map[string]RootStatus{},
	}
}

// Watch has a directory watched, until stop is called, which may be done more than once. It need not be there yet, it may be
// a link, and may become another directory. It is told of as soon as it is watched, and then whenever it may have changed.
func (w *Watcher) Watch(dir string) (stop func()) { return w.WatchWithin(dir, Bounds{}) }

// WatchWithin has a directory watched as Watch does, but no more of it than the bounds allow. Status has the reason if that is
// not all of it. If several watch a directory, the bounds of the first of them hold.
func (w *Watcher) WatchWithin(dir string, b Bounds) (stop func()) {
	if abs, err := filepath.Abs(dir); err == nil { // else there is no working directory, and dir is as good
		dir = abs
	}
	w.use(dir, 1, b)
	return sync.OnceFunc(func() { w.use(dir, -1, b) })
}

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

// Changes gives the roots that are to be looked at again, as Watch was told them made absolute. What nobody takes is
// gathered. It is for one receiver, and nothing comes once Run has returned.
func (w *Watcher) Changes() <-chan []string { return w.changes }

// Status tells how each root is watched, in the order of their names.
func (w *Watcher) Status() []RootStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.SortedFunc(maps.Values(w.status), func(a, b RootStatus) int { return cmp.Compare(a.Root, b.Root) })
}

// report keeps the status of a root, and logs when it becomes another one.
func (w *Watcher) report(s RootStatus) {
	w.mu.Lock()
	before := w.status[s.Root]
	if w.users[s.Root] > 0 {
		w.status[s.Root] = s
	}
	w.mu.Unlock()
	switch {
	case s.Reason != "" && (before.Reason == "" || s.Mode != before.Mode):
		w.config.Log.Warn("a directory is not watched as it should be", "root", s.Root, "mode", s.Mode, "reason", s.Reason)
	case s.Reason == "" && before.Reason != "":
		w.config.Log.Info("a directory is watched again as it should be", "root", s.Root)
	}
}

// Run watches until ctx is done, and leaves nothing behind. It is called once.
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

// loop makes what Run runs. Without fs, everything is polled, and without says why.
func (w *Watcher) loop(fs *fsnotify.Watcher, without error) *loop {
	l := &loop{w: w, config: w.config, without: without, roots: map[string]*root{}, trouble: make(chan error, 1)}
	if without == nil {
		l.notes = &notes{fs: fs, limit: w.config.Limits.Watches, seen: map[string]os.FileInfo{}}
	}
	return l
}
