package watch

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// loop is a Watcher at work. All of it belongs to the goroutine of Run, but for trouble.
type loop struct {
	w       *Watcher
	config  Config
	notes   *notes // nil if the system gives no events
	without error  // why it does not
	roots   map[string]*root
	trouble chan error // events may have been lost
	rescan  time.Time  // when everything is looked at
	poll    time.Time  // when what is polled is looked at
}

// root is a root that is watched.
type root struct {
	dir         string
	bounds      Bounds
	rest        time.Time        // nobody looks at it before, unless it is new
	places      map[string]names // the directories that are watched for it
	polling     bool
	again       bool      // it is tried anew whether events can be had
	reason      string    // why it is, or why not all of it is watched
	signature   string    // when it was polled last
	first, last time.Time // of the events that were not told yet; zero: none
	ready       bool      // to be told
}

// names are the entries of a directory that matter; nil: all do.
type names map[string]bool

// drain takes errors, on a goroutine of its own: fsnotify may send one while it holds the lock that adding a watch needs.
func (l *loop) drain(errs <-chan error) {
	for err := range errs {
		select {
		case l.trouble <- err:
		default: // what is in there has the same effect
		}
	}
}

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
			l.told(ready)
		case e, ok := <-l.events():
			l.saw(e, ok)
		case err := <-l.trouble:
			l.config.Log.Debug("events of files may be lost", "error", err)
			l.noteAll()
		}
	}
}

func (l *loop) events() <-chan fsnotify.Event {
	if l.notes == nil {
		return nil
	}
	return l.notes.fs.Events
}

// adopt begins with roots that are wanted now, and ends with those that are not.
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

// act does what is due.
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

// settle tells of a root, unless there is something new in it even now: directories of which nobody knew are watched only
// from now on, so they may still be written.
func (l *loop) settle(r *root, now time.Time) {
	again := r.again
	r.again = false
	if l.arm(r, again) && now.Before(r.first.Add(longest*l.config.Settle)) {
		r.last = time.Now()
		return
	}
	r.first, r.last, r.ready = time.Time{}, time.Time{}, true
}

// next is when something is due.
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

func (l *loop) polls() bool {
	for _, r := range l.roots {
		if r.polling {
			return true
		}
	}
	return false
}

// ready are the roots to tell of, and the channel to do so if there are any.
func (l *loop) ready() (dirs []string, changes chan<- []string) {
	for dir, r := range l.roots {
		if r.ready {
			dirs, changes = append(dirs, dir), l.w.changes
		}
	}
	slices.Sort(dirs)
	return dirs, changes
}

func (l *loop) told(dirs []string) {
	for _, dir := range dirs {
		l.roots[dir].ready = false
	}
}

// saw takes an event. It matters to the roots that watch the directory that it is of, or in.
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

func (l *loop) noteAll() {
	for _, r := range l.roots {
		r.note()
	}
}

// note says that there is something to tell of a root.
func (r *root) note() {
	r.last = time.Now()
	if r.first.IsZero() {
		r.first = r.last
	}
}

// due is when somebody looks whether it can be told.
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
