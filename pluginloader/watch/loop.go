package watch

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// loop is the state of Watcher.Run. Only that goroutine uses it, except for the channel trouble.
type loop struct {
	w       *Watcher
	config  Config
	notes   *notes // nil if the system reports no events
	without error  // why notes is nil
	roots   map[string]*root
	trouble chan error // errors after which events may be lost
	rescan  time.Time  // time of the next scan of everything
	poll    time.Time  // time of the next scan of polled roots
}

// root is the state of one watched root. An event moves it from quiet (first is zero) to changed.
// After a quiet period it becomes ready, and then it is sent to the receiver.
type root struct {
	dir         string
	bounds      Bounds
	rest        time.Time        // do not scan before this time, unless the root is new
	places      map[string]names // the watched directories
	polling     bool
	again       bool      // try to get events at the next scan
	reason      string    // why the root is polled, or which part is not watched
	signature   string    // at the last poll
	first, last time.Time // times of the events not yet reported; zero: none
	ready       bool      // to be sent to the receiver
}

// names are the entries of a directory that matter; nil: all of them.
type names map[string]bool

// drain receives errors on its own goroutine. fsnotify may send one while it holds the lock that
// adding a watch needs, so the loop itself cannot receive them.
func (l *loop) drain(errs <-chan error) {
	for err := range errs {
		select {
		case l.trouble <- err:
		default: // an error that is already waiting has the same effect
		}
	}
}

// run is the event loop. Each round applies the current roots, does what is due, and waits for the
// next event, deadline or receiver.
func (l *loop) run(ctx context.Context) {
	l.rescan = time.Now().Add(l.config.Rescan)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wanted := l.w.wanted.Next()
		l.adopt()
		l.act(time.Now())
		timer.Reset(time.Until(l.next()))
		ready, changes := l.ready()
		select {
		case <-ctx.Done():
			return
		case <-wanted:
		case <-timer.C:
		case changes <- ready:
			l.markReported(ready)
		case e, ok := <-l.events():
			l.saw(e, ok)
		case err := <-l.trouble:
			l.config.Log.Debug("events of files may be lost", "error", err)
			l.noteAll()
		}
	}
}

// events returns the channel of events; nil, which blocks, without a system watcher.
func (l *loop) events() <-chan fsnotify.Event {
	if l.notes == nil {
		return nil
	}
	return l.notes.fs.Events
}

// adopt adds roots that are newly wanted and drops those without users.
func (l *loop) adopt() {
	l.w.mu.Lock()
	users, bounds := maps.Clone(l.w.users), maps.Clone(l.w.bounds)
	l.w.mu.Unlock()
	for dir, r := range l.roots {
		if users[dir] == 0 {
			delete(l.roots, dir)
			l.release(r.places)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(users)) {
		if l.roots[dir] == nil {
			r := &root{dir: dir, bounds: bounds[dir]}
			l.roots[dir] = r
			l.arm(r, true)
			r.ready = true
		}
	}
}

// act does what is due at now: a rescan, a poll, and the end of quiet periods.
func (l *loop) act(now time.Time) {
	if !now.Before(l.rescan) {
		for _, r := range l.roots {
			r.again = true
		}
		l.noteAll()
		l.rescan = now.Add(l.config.Rescan)
	}
	if l.polls() && !now.Before(l.poll) {
		for _, r := range l.roots {
			if r.polling && r.first.IsZero() && !now.Before(r.rest) && l.arm(r, false) {
				r.note()
			}
		}
		l.poll = time.Now().Add(l.config.Poll)
	}
	for _, r := range l.roots {
		if !r.first.IsZero() && !now.Before(r.due(l.config.Settle)) {
			l.settle(r, now)
		}
	}
}

// settle makes a changed root ready. If the scan finds new directories, it waits for another quiet
// period: they are watched only from now on and may still be written.
func (l *loop) settle(r *root, now time.Time) {
	again := r.again
	r.again = false
	if l.arm(r, again) && now.Before(r.first.Add(longest*l.config.Settle)) {
		r.last = time.Now()
		return
	}
	r.first, r.last, r.ready = time.Time{}, time.Time{}, true
}

// next returns the time at which something is due.
func (l *loop) next() time.Time {
	at := l.rescan
	if l.polls() && l.poll.Before(at) {
		at = l.poll
	}
	for _, r := range l.roots {
		if due := r.due(l.config.Settle); !r.first.IsZero() && due.Before(at) {
			at = due
		}
	}
	return at
}

// polls reports whether any root is polled.
func (l *loop) polls() bool {
	for _, r := range l.roots {
		if r.polling {
			return true
		}
	}
	return false
}

// ready returns the roots to report and the channel to send them to, which is nil if there are
// none.
func (l *loop) ready() (dirs []string, changes chan<- []string) {
	for dir, r := range l.roots {
		if r.ready {
			dirs, changes = append(dirs, dir), l.w.changes
		}
	}
	slices.Sort(dirs)
	return dirs, changes
}

// markReported marks roots as reported.
func (l *loop) markReported(dirs []string) {
	for _, dir := range dirs {
		l.roots[dir].ready = false
	}
}

// saw handles an event: it marks the roots that watch its directory. ok is false if fsnotify has
// stopped; then everything is polled.
func (l *loop) saw(e fsnotify.Event, ok bool) {
	if !ok {
		l.notes, l.without = nil, fsnotify.ErrClosed
		l.noteAll()
		return
	}
	dir, name := filepath.Split(e.Name)
	dir = filepath.Clean(dir)
	for _, r := range l.roots {
		_, itself := r.places[e.Name]
		if some, in := r.places[dir]; itself || in && (some == nil || some[name]) {
			r.note()
		}
	}
}

// noteAll marks all roots as changed, after events may have been lost.
func (l *loop) noteAll() {
	for _, r := range l.roots {
		r.note()
	}
}

// note records an event.
func (r *root) note() {
	r.last = time.Now()
	if r.first.IsZero() {
		r.first = r.last
	}
}

// due returns when the root's quiet period ends, at the latest after longest settle times.
func (r *root) due(settle time.Duration) time.Time {
	at := r.last.Add(settle)
	if late := r.first.Add(longest * settle); late.Before(at) {
		at = late
	}
	if at.Before(r.rest) {
		return r.rest
	}
	return at
}
